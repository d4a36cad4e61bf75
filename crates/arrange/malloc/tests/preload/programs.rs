//! Real programs under the library: they print what they print without it, and their small objects
//! really were placed, or the test would prove nothing.

use std::process::Command;

use crate::support::{Rig, installed};

/// Runs a program, if it is installed, with and without the library; at least 90 % of what
/// could be placed must have been, and at least `objects` of them.
fn placed(name: &str, objects: u64, change: impl Fn(&mut Command)) {
    let Some(program) = installed(name) else { return };
    let rig = Rig::new();
    rig.same(program, change);
    let report = rig.largest();
    assert!(report.placed().objects >= objects, "{name}: {:?}", report.placed());
    assert!(report.placed_share() > Some(0.9), "{name}: {:?}", report.placed_share());
}

const PYTHON: &str = r"
import threading, subprocess, sys, hashlib, json, collections
results = {}
def work(n):
    tree = {}
    for i in range(20000):
        tree[str((i * 7919 + n) % 10007)] = [i, str(i), (i, n)]
        if i % 3 == 0:
            tree.pop(str((i * 31 + n) % 10007), None)
    text = json.dumps(sorted(tree.items()))
    results[n] = hashlib.sha256(text.encode()).hexdigest()
for generation in range(2):
    threads = [threading.Thread(target=work, args=(n + generation * 4,)) for n in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
print(sorted(results.items()))
print(subprocess.run([sys.executable, '-c', 'print(sum(range(1000)))'], capture_output=True).stdout)
import multiprocessing
def square(n):
    return [n * n, str(n) * 3]
if __name__ == '__main__':
    with multiprocessing.get_context('fork').Pool(2) as pool:
        print(pool.map(square, range(50)))
";

#[test]
fn python_with_threads_subprocesses_and_forks() {
    placed("python3", 100_000, |command| {
        // Its own allocator would take memory by the page.
        command.env("PYTHONMALLOC", "malloc").args(["-c", PYTHON]);
    });
}

#[test]
fn perl_with_hashes_and_strings() {
    placed("perl", 40_000, |command| {
        command.args([
            "-e",
            "my %h; for my $i (1..60000) { $h{$i * 7919 % 10007} .= \"x$i\"; delete $h{$i} } \
                 my $s = 0; $s += length($h{$_}) for sort keys %h; print \"$s\\n\";",
        ]);
    });
}

#[test]
fn sqlite_with_indexes() {
    placed("sqlite3", 20_000, |command| {
        command.args([
            ":memory:",
            "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL);
                 WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000)
                 INSERT INTO t SELECT i, 'text ' || (i * 7919 % 10007), i / 3.0 FROM n;
                 CREATE INDEX x ON t(b);
                 SELECT count(*), sum(a), max(b), min(b) FROM t WHERE b LIKE 'text 1%';
                 SELECT b, count(*) FROM t GROUP BY b ORDER BY 2 DESC, 1 LIMIT 20;",
        ]);
    });
}

#[test]
fn git_reads_this_repository_or_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(git) = installed("git") else { return };
    let run = |arguments: &[&str]| {
        let done = Command::new(&git)
            .arg("-C")
            .arg(folder.path())
            .args(["-c", "user.name=a", "-c", "user.email=a@b"])
            .args(arguments)
            .output()
            .expect("it runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    run(&["init", "-q"]);
    for commit in 0..30 {
        for file in 0..40 {
            let text = format!("{commit} {file}\n").repeat(commit + file);
            std::fs::write(folder.path().join(format!("file{file}")), text).expect("writable");
        }
        run(&["add", "."]);
        run(&["commit", "-q", "-m", "a commit"]);
    }
    placed("git", 1000, |command| {
        command.arg("-C").arg(folder.path()).args(["log", "-p", "--stat", "--format=%s"]);
    });
}

#[test]
fn the_c_compiler_compiles_a_large_file_alike() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("large.c");
    let mut text = String::from("int total;\n");
    for i in 0..2000 {
        text.push_str(&format!(
            "static int f{i}(int a, int b) {{ int s = {i}; for (int i = 0; i < a; i++) \
                 s += i * b ^ {i}; return s > 9 ? s - a : f{}(b, a) + total; }}\n",
            i.max(1) - 1
        ));
    }
    text.push_str("int main(void) { return f1999(3, 4); }\n");
    std::fs::write(&source, text).expect("writable");
    placed("cc", 10_000, |command| {
        command.args(["-w", "-O1", "-S", "-o", "-"]).arg(&source);
    });
}
