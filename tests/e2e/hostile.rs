//! Arguments that make no sense: refused with a reason, or answered, but never a panic and never a signal.

use std::fs;
use std::os::unix::process::ExitStatusExt;

use crate::support::{folder, run};

/// Wrong usage, by the parser or behind it.
const WRONG: [&str; 38] = [
    "predict bcast --machine M --threads 4 --root 99",
    "predict bcast --machine M --threads 4,2 --root 3",
    "predict barrier --machine M --threads 4 --root 4",
    "predict bcast --machine M --root 65535",
    "predict bcast --machine M --threads 0",
    "predict bcast --machine M --threads 18446744073709551615",
    "predict bcast --machine M --threads 4..",
    "predict bcast --machine M --threads 4 --root -1",
    "predict bcast --machine M --threads 4 --bytes 1073741823",
    "predict scatter --machine M --threads 16 --bytes 4294967295",
    "predict bcast --machine M --threads 4 --ring 1048576",
    "predict bcast --machine M --threads 4 --ring 4294967295 --bytes 4294967295",
    "predict bcast --machine M --threads 4 --term overlapped-ack=1e300",
    "predict bcast --machine M --threads 4 --seeds 18446744073709551615",
    "predict nothing --machine M",
    "sim jacobi --size small --threads 0",
    "sim jacobi --size small --variant nothing",
    "predict bcast --machine M --threads 2..1024",
    "predict bcast --machine M --threads 4 --ring 0",
    "predict bcast --machine M --threads 4 --ring 3",
    "predict bcast --machine M --threads 4 --bytes 0 --simulate --seeds 0",
    "predict reduce --machine M --threads 4 --bytes 12",
    "predict allgather --machine M --threads 4 --ring 1",
    "predict bcast --machine no-such-machine",
    "predict bcast --smt assumed",
    "machine no-such-machine",
    "show words --query 0:zz",
    "show words --query 65536:0",
    "show words --query :",
    "show words --json=",
    "show words --json --html=-",
    "map --memory 0",
    "map --buffer 0",
    "map --cores 5-2",
    "map --cores 4095",
    "verify model --windows 0",
    "bench chase --sizes nan",
    "bench tier --area 0",
];

/// What cannot be done, or only just.
const OTHERS: [&str; 28] = [
    "predict bcast --machine M --root 5",
    "predict bcast --machine M --threads 16 --root 15",
    "predict bcast --machine M --threads 4 --ring 4096",
    "predict allreduce --machine M --threads 4 --ring 1 --objective steady",
    "predict bcast --machine M --threads 4 --root 3 --ring 1 --objective steady --start memory",
    "predict bcast --machine M --threads 4 --bytes 0 --simulate --seeds 1",
    "predict gather --machine M --threads 3 --bytes 1 --root 2 --acks counter --acks-in-call",
    "predict bcast --machine M --threads 4 --term overlapped-ack=1e9 --term rfo-sharer=1e9 --simulate --seeds 1",
    "predict bcast --machine M --threads 4 --term measured",
    "predict bcast --machine M --threads 32 --smt assumed --root 31",
    "predict bcast --threads 4 --atlas words",
    "predict bcast --machine one.toml",
    "predict bcast --machine none.toml",
    "sim jacobi --size small --threads 4096",
    "sim jacobi --size small --seed 18446744073709551615 --threads 2",
    "sim jacobi --size small --replay words",
    "sim jacobi --size small --machine none.toml",
    "sim jacobi --size small --machine one.toml",
    "sim jacobi --machine /dev/zero",
    "machine /dev/zero",
    "machine words",
    "machine ./",
    "machine one.toml",
    "machine none.toml --json",
    "show /dev/zero",
    "show words",
    "show ./",
    "cla /dev/zero",
];

#[test]
fn no_arguments_end_in_a_panic() {
    let folder = folder("hostile");
    fs::write(folder.join("words"), "words").expect("written");
    let paper = include_str!("../../machines/xeon-e5-2660-2s.toml");
    let (before, after) = paper.split_once("[[cores]]\nids = \"8-15\"").expect("two sockets");
    let (_, after) = after.split_once("[[regions]]").expect("regions");
    let one = format!("{}[[regions]]{after}", before.replace("ids = \"0-7\"", "ids = \"0\""));
    fs::write(folder.join("one.toml"), one.replace("ids = \"0-1\"", "ids = \"0\""))
        .expect("written");
    fs::write(folder.join("none.toml"), "name = \"m\"\ntitle = \"m\"\nsources = []\n")
        .expect("written");
    let end = |line: &str| {
        let line = line.replace("--machine M", "--machine xeon-e5-2660-2s");
        let args: Vec<&str> = line.split_whitespace().collect();
        let (output, _, err) = run(&folder, &args);
        assert_eq!(output.status.signal(), None, "{line}\n{err}");
        assert!(!err.contains("panicked"), "{line}\n{err}");
        (output.status.code(), err)
    };
    for line in WRONG {
        let (code, err) = end(line);
        assert_eq!(code, Some(2), "{line}\n{err}");
    }
    for line in OTHERS {
        let (code, err) = end(line);
        assert!(code.is_some_and(|code| code <= 1), "{line}: {code:?}\n{err}");
    }
    let (_, err) = end(WRONG[0]);
    assert!(err.contains("--root 99") && err.contains("0 to 3"), "{err}");
}
