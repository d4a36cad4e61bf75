//! The programs, and the input of each. All output is a function of the input alone.

mod servers;

use std::path::{Path, PathBuf};

/// How two runs are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compare {
    /// Standard output byte by byte.
    Output,
    /// The verdicts of Python's unittest.
    TestLines,
}

/// A program to be run twice.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) name: &'static str,
    /// Options of `isochrone run`.
    pub(super) options: &'static [&'static str],
    pub(super) command: Vec<String>,
    pub(super) environment: &'static [(&'static str, &'static str)],
    pub(super) files: Vec<(&'static str, String)>,
    pub(super) compare: Compare,
    /// Whether most of what could be placed must have been.
    pub(super) must_place: bool,
    /// What it prints if it has really worked.
    pub(super) says: &'static str,
    /// Who runs it where root may not.
    pub(super) user: Option<&'static str>,
    needs: &'static [&'static str],
}

impl Case {
    fn new(name: &'static str, needs: &'static [&'static str], command: &[&str]) -> Self {
        Self {
            name,
            options: &[],
            command: command.iter().map(|&word| word.to_owned()).collect(),
            environment: &[],
            files: Vec::new(),
            compare: Compare::Output,
            must_place: true,
            says: "",
            user: None,
            needs,
        }
    }

    fn file(mut self, name: &'static str, text: impl Into<String>) -> Self {
        self.files.push((name, text.into()));
        self
    }

    fn with(mut self, options: &'static [&'static str], must_place: bool) -> Self {
        (self.options, self.must_place) = (options, must_place);
        self
    }

    fn saying(mut self, words: &'static str) -> Self {
        self.says = words;
        self
    }

    fn in_environment(mut self, all: &'static [(&'static str, &'static str)]) -> Self {
        self.environment = all;
        self
    }

    fn by(mut self, user: &'static str) -> Self {
        self.user = Some(user);
        self
    }

    /// The programs that it needs.
    #[cfg(test)]
    pub(super) fn needs(&self) -> &'static [&'static str] {
        self.needs
    }

    /// The first program that it needs and that is not installed.
    pub(super) fn missing(&self) -> Option<&'static str> {
        self.needs.iter().copied().find(|name| !is_installed(name))
    }
}

/// Whether a program lies in `PATH`, where administrators have theirs, or where Debian has PostgreSQL's.
pub(crate) fn is_installed(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.push("/usr/sbin".into());
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    folders.extend(versions.map(|version| version.path().join("bin")));
    folders.iter().any(|folder| folder.join(name).is_file())
}

/// Python leaves its small objects to malloc.
const PYTHON: &[(&str, &str)] = &[("PYTHONMALLOC", "malloc"), ("PYTHONHASHSEED", "0")];

/// Open MPI, plainly and over libfabric, and with our library for MPI and another allocator preloaded too, in each
/// order.
fn mpi_jobs() -> Vec<Case> {
    let job = |name, environment| {
        Case::new(name, &["mpicc.openmpi", "mpirun.openmpi"], &["sh", "openmpi.sh"])
            .file("openmpi.sh", servers::OPENMPI_SH)
            .file("ranks.c", servers::RANKS_C)
            .saying("job ended with 0")
            .with(&[], false)
            .in_environment(environment)
    };
    vec![
        job("open mpi", &[]),
        job("open mpi, libfabric", &[("MCA", "--mca pml cm --mca mtl ofi")]),
        job("malloc, mpi, mimalloc", &[("ORDER", "malloc mpi mimalloc")]),
        job("malloc, mimalloc, mpi", &[("ORDER", "malloc mimalloc mpi")]),
        job("mpi, malloc, mimalloc", &[("ORDER", "mpi malloc mimalloc")]),
        job("mpi, mimalloc, malloc", &[("ORDER", "mpi mimalloc malloc")]),
        job("mimalloc, malloc, mpi", &[("ORDER", "mimalloc malloc mpi")]),
        job("mimalloc, mpi, malloc", &[("ORDER", "mimalloc mpi malloc")]),
    ]
}

/// All programs; `root` is a git repository with some history.
pub(super) fn all(root: &Path) -> Vec<Case> {
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned()).display().to_string();
    let git = format!(
        "git clone -q --bare '{root}' copy && cd copy && git log --stat --format='%H %an %s' && \
         git repack -adfq --depth=20 --window=20 --threads=2 && git fsck --full --no-progress && \
         git log -p -M -C --find-copies-harder | sha256sum"
    );
    let mut all = vec![
        python_tests("python threads", "test.test_thread test.test_threading test.test_queue"),
        python_tests("python subprocess", "test.test_subprocess"),
        python_tests("python containers", "test.test_list test.test_dict test.test_set test.test_deque test.test_heapq test.test_bytes test.test_unicode test.test_re test.test_json test.test_pickle"),
        python_tests("python processes", "forked.WithProcessesTestPool forked.WithProcessesTestQueue forked.WithManagerTestPool forked.WithThreadsTestPool forked.WithProcessesTestValue forked.WithProcessesTestArray forked.WithProcessesTestConnection")
            .file("forked.py", "import test._test_multiprocessing as all\nall.install_tests_in_module_dict(globals(), 'fork')\n"),
        Case::new("python objects", &["python3"], &["python3", "objects.py"])
            .file("objects.py", OBJECTS_PY)
            .in_environment(PYTHON),
        Case::new("python forks", &["python3"], &["python3", "forks.py"])
            .file("forks.py", FORKS_PY)
            .in_environment(PYTHON),
        Case::new("perl", &["perl"], &["perl", "words.pl"]).file("words.pl", WORDS_PL),
        Case::new("sqlite3", &["sqlite3"], &["sqlite3", ":memory:", ".read table.sql"])
            .file("table.sql", TABLE_SQL),
        Case::new("git", &["git"], &["sh", "-c", &git]),
        Case::new("git history", &["git", "awk"], &["sh", "history.sh"])
            .file("history.sh", HISTORY_SH)
            .saying("fsck ended with 0"),
        Case::new(
            "c++ compiler",
            &["g++"],
            &["sh", "-c", "g++ -O1 -g0 -c large.cpp -o large.o && sha256sum large.o"],
        )
        .file("large.cpp", large_cpp()),
        Case::new("c++ at -O2", &["g++"], &["sh", "-c", "g++ -std=c++20 -O2 -g0 large.cpp main.cpp -o large && sha256sum large && ./large"])
            .file("large.cpp", large_cpp())
            .file("main.cpp", MAIN_CPP)
            .saying("19899"),
        // Rust's own builds of rustc bring an allocator of their own, which then serves it.
        Case::new("rustc", &["rustc"], &["sh", "-c", "rustc -O -C codegen-units=1 -C metadata=0 --emit=asm,link large.rs && sha256sum large.s && ./large"])
            .file("large.rs", large_rs())
            .saying("sum 3280")
            .with(&[], false),
        Case::new("clang", &["clang++"], &["sh", "-c", "clang++ -O1 -g0 -c large.cpp -o large.o && sha256sum large.o"])
            .file("large.cpp", large_cpp()),
        Case::new("redis", &["redis-server", "redis-benchmark"], &["sh", "redis.sh"])
            .file("redis.sh", REDIS_SH)
            .saying("server ended with 0"),
        // These have their objects in pools of their own; what is left of them for malloc is placed or not.
        Case::new("postgresql", &["postgres", "pgbench"], &["sh", "postgres.sh"])
            .file("postgres.sh", servers::POSTGRES_SH)
            .saying("server ended with 0")
            .by("postgres")
            .with(&[], false),
        Case::new("memcached", &["memcached", "python3"], &["sh", "memcached.sh"])
            .file("memcached.sh", servers::MEMCACHED_SH)
            .file("client.py", servers::MEMCACHED_PY)
            .saying("server ended with 0")
            .with(&[], false),
        Case::new("mariadb", &["mariadbd", "mariadb-slap"], &["sh", "mariadb.sh"])
            .file("mariadb.sh", servers::MARIADB_SH)
            .saying("server ended with 0")
            .with(&[], false),
        Case::new("nginx", &["nginx", "ab"], &["sh", "nginx.sh"])
            .file("nginx.sh", servers::NGINX_SH)
            .saying("server ended with 0")
            .with(&[], false),
        Case::new("node", &["node"], &["node", "work.js"]).file("work.js", WORK_JS),
        // What is refused must lose nothing.
        Case::new("1 MiB arena", &["python3"], &["python3", "objects.py"])
            .file("objects.py", OBJECTS_PY)
            .in_environment(PYTHON)
            .with(&["--arena-limit", "1M"], false),
        Case::new("checked", &["perl"], &["perl", "words.pl"])
            .file("words.pl", WORDS_PL)
            .with(&["--check"], true),
        Case::new("no memory", &["python3"], &["sh", "-c", "ulimit -v 700000; python3 full.py"])
            .file("full.py", FULL_PY)
            .saying("True True")
            .in_environment(PYTHON)
            .with(&["--arena-limit", "64M"], false),
    ];
    all.extend(mpi_jobs());
    all
}

fn python_tests(name: &'static str, modules: &str) -> Case {
    let mut words = vec!["python3", "-m", "unittest", "-v"];
    words.extend(modules.split(' '));
    let mut case = Case::new(name, &["python3"], &words).in_environment(PYTHON);
    case.compare = Compare::TestLines;
    case
}

/// Objects of many sizes made by four threads and freed by others, and what is left of them.
const OBJECTS_PY: &str = r#"
import queue, threading, zlib
handed = [queue.Queue(64) for _ in range(4)]
sums = [0] * 4
def work(me):
    keep, state = {}, me + 1
    for step in range(120_000):
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        key = state >> 50
        keep[key] = ["x" * (state >> 20 & 127), (step, key), {step: key}]
        if step % 64 == 0:
            handed[(me + 1) % 4].put(keep.pop(key))
            handed[me].get()
        elif step % 16 == 0:
            keep.pop(next(iter(keep)))
    sums[me] = zlib.crc32(repr(sorted(keep.items())).encode())
threads = [threading.Thread(target=work, args=(me,)) for me in range(4)]
for q in handed: q.put(["", 0, 0])
for t in threads: t.start()
for t in threads: t.join()
print(sums)
"#;

/// Children of a process with threads, which allocate and free what they inherit.
const FORKS_PY: &str = r#"
import os, threading
inherited = [[str(i) * 3, {i: i}] for i in range(150_000)]
busy = True
def churn():
    while busy:
        [str(i) for i in range(1000)]
threads = [threading.Thread(target=churn) for _ in range(3)]
for t in threads: t.start()
ends = []
for child in range(12):
    pid = os.fork()
    if pid == 0:
        del inherited[::2]
        made = [[str(i)] for i in range(20_000)]
        os._exit((len(inherited) + len(made) + child) % 251)
    ends.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
busy = False
for t in threads: t.join()
more = [[str(i) * 3] for i in range(400_000)]
print(ends, len(inherited), sum(len(m[0]) for m in more))
"#;

/// Hashes, lists and strings, grown and thrown away.
const WORDS_PL: &str = r#"
my ($state, %count, @log) = (7);
for my $step (1..900_000) {
    $state = ($state * 69069 + 1) % 4294967296;
    my $word = join '', map { chr(97 + ($state >> (4 * $_)) % 16) } 0..5;
    $count{$word} .= $step % 7;
    push @log, [$word, $step] if $step % 3 == 0;
    splice @log, 0, 1000 if @log > 50_000;
    delete $count{$log[$state % @log][0]} if @log && $step % 5 == 0;
}
my $sum = 0;
for my $word (sort keys %count) { $sum = ($sum * 31 + length($count{$word}) + ord $word) % 1_000_000_007 }
print scalar(keys %count), " $sum ", scalar(@log), "\n";
"#;

/// A database in memory with indices, joins, and strings built by aggregates.
const TABLE_SQL: &str = r"
CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, part INTEGER, weight REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)
  INSERT INTO item SELECT i, hex(i * 2654435761 % 1000003), i * 7919 % 1000, i % 97 FROM n;
CREATE INDEX by_name ON item(name);
CREATE INDEX by_part ON item(part, weight);
SELECT part, count(*), sum(weight) FROM item GROUP BY part ORDER BY 3 DESC LIMIT 20;
SELECT length(group_concat(name)), count(DISTINCT name) FROM item;
DELETE FROM item WHERE id % 3 = 0;
UPDATE item SET name = name || '-' || part WHERE id % 5 = 0;
SELECT a.part, count(*) FROM item a JOIN item b ON a.name = b.name AND a.id < b.id GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 20;
WITH RECURSIVE t(i, s) AS (SELECT 1, '' UNION ALL SELECT i + 1, json_array(i, substr(s, 1, 90)) FROM t WHERE i < 60000)
  SELECT count(*), sum(length(s)) FROM t;
PRAGMA integrity_check;
";

/// Memory is used up until it is refused, twice, and then all is well.
const FULL_PY: &str = r#"
def fill():
    kept = []
    try:
        while True:
            kept.append([bytes(len(kept) % 200 + 40)])
    except MemoryError:
        some = len(kept) > 100_000
        kept.clear()
        return some
print(fill(), fill())
print(sum(len(x) for x in [str(i) for i in range(100_000)]))
"#;

/// A server without persistence on a socket in its folder, its own benchmark, and then the same
/// keys every time.
const REDIS_SH: &str = r#"
server=${REDIS_SERVER:-redis-server}
"$server" --version | sed 's/.*\(malloc=[^ ]*\).*/note: \1/'
"$server" --port 0 --unixsocket "$PWD/s" --save '' --appendonly no >log 2>&1 &
server=$!
for i in $(seq 100); do [ -S s ] && break; sleep 0.1; done
begin=$(date +%s.%N)
redis-benchmark -s "$PWD/s" -q -n 60000 -r 100000 -d 40 -P 8 -t set,get,incr,lpush,lpop,sadd,hset,zadd,mset >/dev/null || echo benchmark failed
date +%s.%N | awk -v begin="$begin" '{ print "rate: " 540000 / ($1 - begin) }'
redis-cli -s "$PWD/s" flushall
awk 'BEGIN { for (i = 0; i < 150000; i++) { printf "SET k%d v%d\r\n", i, i * 7919; printf "HSET h%d f%d %d\r\n", i % 500, i, i; printf "ZADD z%d %d m%d\r\n", i % 50, i * 31 % 1009, i } }' >commands
redis-cli -s "$PWD/s" --pipe <commands | grep replies
for key in h1 h499 ; do redis-cli -s "$PWD/s" hgetall $key | sort | sha256sum; done
for key in z0 z49 ; do redis-cli -s "$PWD/s" zrange $key 0 -1 withscores | sha256sum; done
redis-cli -s "$PWD/s" dbsize
redis-cli -s "$PWD/s" eval 'local n = 0; for i = 0, 149999 do n = n + #redis.call("GET", "k" .. i) end; return n' 0
redis-cli -s "$PWD/s" shutdown nosave
wait $server; echo server ended with $?
"#;

/// Objects of V8, and buffers, compression, hashes and worker threads outside of it.
const WORK_JS: &str = r#"
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const zlib = require('zlib'), crypto = require('crypto');
function work(seed) {
  let state = BigInt(seed), map = new Map();
  for (let step = 0; step < 40000; step++) {
    state = (state * 6364136223846793005n + 1442695040888963407n) & 0xffffffffffffffffn;
    const key = Number(state >> 50n);
    map.set(key, { step, text: 'x'.repeat(key % 50), list: [step, key] });
    if (step % 3 === 0) map.delete(Number((state >> 40n) % 16384n));
  }
  let hash = crypto.createHash('sha256');
  for (let part = 0; part < 600; part++) {
    const packed = zlib.deflateRawSync(JSON.stringify([...map].slice(part, part + 200)));
    hash.update(zlib.inflateRawSync(packed));
  }
  return hash.digest('hex');
}
if (isMainThread) {
  const ends = [1, 2, 3].map(seed => new Promise((resolve, reject) => {
    const worker = new Worker(__filename, { workerData: seed });
    worker.on('message', resolve); worker.on('error', reject);
  }));
  Promise.all(ends).then(hashes => console.log([work(4), ...hashes].join('\n')));
} else parentPort.postMessage(work(workerData));
"#;

/// A repository made from a stream, its packs made anew, and everything read again.
const HISTORY_SH: &str = r#"
git init -q --bare -b main copy && cd copy || exit 1
awk 'BEGIN { for (c = 1; c <= 9000; c++) {
  printf "commit refs/heads/main\ncommitter A B <a@b> %d +0000\ndata 4\nc%03d\n", 1000000000 + c * 60, c % 1000
  for (f = 0; f < 3; f++) { text = ""; for (l = 0; l < 40; l++) text = text sprintf("%d line %d of %d\n", (l == c % 40) ? c : l, l, f)
    printf "M 100644 inline d%d/f%d\ndata %d\n%s\n", (c * 7 + f) % 97, f, length(text), text } } print "done" }' |
  git fast-import --quiet --done || exit 1
git repack -adfq --depth=30 --window=30 --threads=2
git fsck --full --no-progress --strict; echo fsck ended with $?
git log --stat --format='%H %ct %s' | sha256sum
git log -p -n 3000 | sha256sum
git rev-list --objects --all | sha256sum
git -c gc.auto=0 gc --quiet && git count-objects -v | grep -E 'in-pack|packs'
"#;

/// What calls the instances.
const MAIN_CPP: &str = r#"
#include <cstdio>
int f0(int); int f7(int); int f59(int);
int main() { long sum = 0; for (int n = 0; n < 67; n++) sum += f0(n) + f7(n) + f59(n); std::printf("%ld\n", sum); }
"#;

/// Many instances of generic code of the standard library, for rustc.
fn large_rs() -> String {
    let mut text = String::from("use std::collections::{BTreeMap, HashMap, HashSet};\n");
    for n in 0..40 {
        text += &format!(
            "#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)] struct T{n}([u32; {len}], String);\n\
             fn f{n}(n: u32) -> usize {{ let mut m = BTreeMap::new(); let mut h = HashMap::new();\n\
             for i in 0..n {{ let mut t = T{n}([0; {len}], i.to_string()); t.0[0] = i; m.insert(t.clone(), vec![i; {len}]); h.insert(t, i); }}\n\
             let mut v: Vec<_> = h.into_iter().collect(); v.sort(); let s: HashSet<_> = v.iter().map(|p| p.1).collect();\n\
             m.len() + s.len() }}\n",
            len = n + 1
        );
    }
    let calls: Vec<String> = (0..40).map(|n| format!("f{n}(41)")).collect();
    text + &format!("fn main() {{ println!(\"sum {{}}\", {}); }}\n", calls.join(" + "))
}

/// Many instances of templates of the standard library.
fn large_cpp() -> String {
    let mut text = String::from(
        "#include <algorithm>\n#include <functional>\n#include <iostream>\n#include <map>\n\
         #include <regex>\n#include <set>\n#include <string>\n#include <unordered_map>\n#include <vector>\n",
    );
    for n in 0..60 {
        text += &format!(
            "struct T{n} {{ int a[{len}]; bool operator<(const T{n}& o) const {{ return a[0] < o.a[0]; }} }};\n\
             int f{n}(int n) {{ std::map<T{n}, std::vector<std::string>> m; std::set<T{n}> s;\n\
             std::unordered_map<int, T{n}> u; std::function<int(int)> g = [&](int i) {{ return i + {n}; }};\n\
             for (int i = 0; i < n; i++) {{ T{n} t{{}}; t.a[0] = g(i); m[t].push_back(\"{n}\"); s.insert(t); u[i] = t; }}\n\
             std::vector<T{n}> v(s.begin(), s.end()); std::stable_sort(v.begin(), v.end());\n\
             return (int)(m.size() + u.size() + v.size()); }}\n",
            len = n + 1
        );
    }
    text
}
