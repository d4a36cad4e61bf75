//! The programs of mimalloc-bench that build without a network, with the arguments that its own
//! script gives them, and what of their output is the result; and programs that most machines have.
//!
//! Their sources are not ours and are neither built nor kept here. Two arguments are shorter than
//! the script's, in every arm alike: the seconds of larson and xmalloc-test, and rptest's loops.

/// What a program costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cost {
    /// The time from start to end.
    Elapsed,
    /// It runs for a fixed time and prints a time for a fixed number of operations.
    Printed {
        /// What stands before the number.
        before: &'static str,
    },
    /// It runs for a fixed time and prints how much it did.
    Rate {
        /// What stands before the number.
        before: &'static str,
        /// What stands after it.
        after: &'static str,
    },
}

/// A program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program {
    /// Its name.
    pub(super) name: &'static str,
    /// That of its file.
    pub(super) file: &'static str,
    /// Its arguments; `N` is the number of cores, `2N` twice that.
    pub(super) arguments: &'static [&'static str],
    /// What is read by it on standard input, beside the program.
    pub(super) input: Option<&'static str>,
    /// What else it needs beside it.
    pub(super) beside: &'static [&'static str],
    /// Where it takes more than a command: what the shell does beside its file.
    pub(super) script: Option<&'static str>,
    pub(super) cost: Cost,
}

const fn elapsed(name: &'static str, arguments: &'static [&'static str]) -> Program {
    Program {
        name,
        file: name,
        arguments,
        input: None,
        beside: &[],
        script: None,
        cost: Cost::Elapsed,
    }
}

/// Interpreters and a data base that most machines have, with work that allocates: for who has no folder of programs.
/// Each takes some tenths of a second.
pub(super) const COMMON: [Program; 4] = [
    elapsed(
        "perl",
        &[
            "-e",
            "for my $round (1..3) { my %h; $h{$_ % 20000} .= \"x$_\" for 1..120000; \
             my @a = sort map { \"$_ $h{$_}\" } keys %h; }",
        ],
    ),
    // Its own arenas would hide the allocator.
    Program {
        file: "env",
        ..elapsed(
            "python3",
            &[
                "PYTHONMALLOC=malloc",
                "python3",
                "-c",
                "for r in range(3):\n d = {str(i): [i, str(i * r)] for i in range(60000)}\n \
                 l = sorted(d.values(), key=lambda v: v[1])",
            ],
        )
    },
    elapsed(
        "sqlite3",
        &[
            ":memory:",
            "create table t(a integer primary key, b text); \
             with recursive n(i) as (select 1 union all select i + 1 from n where i < 60000) \
             insert into t select i, hex(i * 7919 % 65521) || i from n; \
             create index x on t(b); select count(*) from t join t u on t.b = u.b;",
        ],
    ),
    elapsed(
        "gawk",
        &["BEGIN { for (i = 0; i < 400000; i++) a[i % 30000] = a[i % 30000] (i % 10); \
           for (k in a) n += length(a[k]); print n }"],
    ),
];

/// All of them, in the order of the script.
pub(super) const PROGRAMS: [Program; 21] = [
    elapsed("cfrac", &["17545186520507317056371138836327483792789528"]),
    elapsed("espresso", &["largest.espresso"]),
    Program { input: Some("barnes.input"), ..elapsed("barnes", &[]) },
    Program {
        cost: Cost::Printed { before: "relative time:" },
        ..elapsed("larson", &["2", "8", "1000", "5000", "100", "4141", "N"])
    },
    Program {
        cost: Cost::Printed { before: "relative time:" },
        ..elapsed("larson-sized", &["2", "8", "1000", "5000", "100", "4141", "N"])
    },
    elapsed("alloc-test", &["N"]),
    elapsed("sh6bench", &["2N"]),
    elapsed("sh8bench", &["2N"]),
    elapsed("cache-scratch", &["N", "1000", "1", "2000000", "N"]),
    elapsed("cache-thrash", &["N", "1000", "1", "2000000", "N"]),
    Program {
        cost: Cost::Printed { before: "rtime:" },
        ..elapsed("xmalloc-test", &["-w", "N", "-t", "2", "-s", "64"])
    },
    elapsed("malloc-large", &[]),
    elapsed("mstress", &["N", "50", "25"]),
    elapsed("mleak", &["5"]),
    Program {
        cost: Cost::Rate { before: "...", after: "memory ops" },
        ..elapsed("rptest", &["N", "0", "1", "2", "100", "1000", "100", "8", "16000"])
    },
    elapsed("glibc-simple", &[]),
    Program {
        cost: Cost::Rate { before: "", after: "iterations" },
        ..elapsed("glibc-thread", &["N"])
    },
    Program { beside: &["test1.smt2"], ..elapsed("z3", &["-smt2", "test1.smt2"]) },
    Program { beside: &["stress_mem.rb"], ..elapsed("ruby", &["stress_mem.rb", "N"]) },
    Program {
        file: "db_bench",
        script: Some("./db_bench --benchmarks=fillrandom --db=./db && rm -r db"),
        cost: Cost::Rate { before: "micros/op", after: "ops/sec" },
        ..elapsed("rocksdb", &[])
    },
    Program {
        file: "redis-server",
        beside: &["redis-benchmark", "redis-cli"],
        script: Some(REDIS),
        cost: Cost::Rate { before: "lrange", after: "requests per second" },
        ..elapsed("redis", &[])
    },
];

/// The server without persistence on a socket beside it, asked for a fixed number of operations. It alone is under the
/// allocator, as in mimalloc-bench.
const REDIS: &str = r#"./redis-server --port 0 --unixsocket ./s --save '' --appendonly no >/dev/null & server=$!
unset LD_PRELOAD
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do [ -S s ] && break; sleep 0.1; done
./redis-benchmark -s ./s -r 1000000 -n 100000 -q -P 16 lpush a 1 2 3 4 5 lrange a 1 5
./redis-cli -s ./s shutdown nosave
wait $server"#;

impl Program {
    /// Its arguments on so many cores.
    pub(super) fn arguments_on(&self, cores: usize) -> Vec<String> {
        let argument = |word: &&str| match *word {
            "N" => cores.to_string(),
            "2N" => (2 * cores).to_string(),
            word => word.to_owned(),
        };
        self.arguments.iter().map(argument).collect()
    }

    /// What lies in the folder of programs.
    pub(super) fn files(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.file).chain(self.input).chain(self.beside.iter().copied())
    }
}

impl Cost {
    /// What a run cost, less being better; `None` where the output does not say.
    pub(super) fn of(self, seconds: f64, output: &str) -> Option<f64> {
        let found = match self {
            Self::Elapsed => Some(seconds),
            Self::Printed { before } => number(output.split_once(before)?.1),
            Self::Rate { before, after } => {
                // Other lines may have the words behind the number as well.
                let (rest, _) = output.split_once(before)?.1.split_once(after)?;
                let mut digits =
                    rest.trim_end().rsplit(|c: char| !(c.is_ascii_digit() || c == '.'));
                number(digits.next()?.trim_matches('.')).map(|rate| 1e9 / rate)
            }
        };
        found.filter(|cost| cost.is_finite() && *cost > 0.0)
    }
}

/// The number with which a text begins.
fn number(text: &str) -> Option<f64> {
    let text = text.trim_start();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    text[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(name: &str, output: &str) -> Option<f64> {
        let program = PROGRAMS.iter().find(|program| program.name == name).unwrap();
        program.cost.of(3.0, output)
    }

    #[test]
    fn results_are_read_as_the_programs_print_them() {
        let larson = "Throughput = 31416138 operations per second, relative time: 31.831s.\nDone\n";
        assert_eq!(cost("larson", larson), Some(31.831));
        assert_eq!(cost("xmalloc-test", "rtime: 3.432, free/sec: 29.138 M\n"), Some(3.432));
        let rptest = "crt          2 threads random linear size [8,16000] 500 loops 1000 allocs \
                      100 ops: ........2650675 memory ops/CPU second (38MiB peak)";
        assert_eq!(cost("rptest", rptest), Some(1e9 / 2_650_675.0));
        assert_eq!(cost("glibc-thread", "126742179 iterations\n"), Some(1e9 / 126_742_179.0));
        assert_eq!(cost("cfrac", "anything"), Some(3.0));
        let redis = "lpush a 1 lrange a 1 5: rps=0.0 (overall: 0.0)\rlpush a 1 lrange a 1 5: 250000.50 requests per \
                     second, p50=1.2 msec";
        assert_eq!(cost("redis", redis), Some(1e9 / 250_000.5));
        let rocksdb = "Read rate: 0 ops/second\nfillrandom   :       5.940 micros/op 168347 ops/sec \
                       5.940 seconds 1000000 operations; 18.6 MB/s";
        assert_eq!(cost("rocksdb", rocksdb), Some(1e9 / 168_347.0));
    }

    #[test]
    fn a_program_that_printed_no_result_has_none() {
        for (name, output) in [
            ("larson", "Segmentation fault"),
            ("xmalloc-test", "rtime: , free/sec: 0"),
            ("rptest", "out of memory"),
            ("glibc-thread", "0 iterations"),
            ("glibc-thread", ""),
        ] {
            assert_eq!(cost(name, output), None, "{name}: {output}");
        }
    }

    #[test]
    fn the_number_of_cores_is_filled_in() {
        let larson = PROGRAMS.iter().find(|program| program.name == "larson").unwrap();
        assert_eq!(larson.arguments_on(12).last().map(String::as_str), Some("12"));
        let sh6bench = PROGRAMS.iter().find(|program| program.name == "sh6bench").unwrap();
        assert_eq!(sh6bench.arguments_on(12), ["24"]);
    }
}
