//! The processes that a program consists of: itself and what it started, as far as it was seen while its parents were
//! there.
//!
//! Not every kernel lists the children of a process, so all processes are gone through. Those that are strangers are
//! remembered, and their files are read once.

use std::collections::{BTreeMap, BTreeSet};

use super::proc::{Stat, numbers, text};

/// The program's processes.
#[derive(Debug)]
pub(super) struct Tree {
    /// With the time at which each was started.
    members: BTreeMap<i32, u64>,
    strangers: BTreeSet<i32>,
}

impl Tree {
    /// That of a program that was just started.
    pub(super) fn of(root: i32) -> Self {
        let started = stat(root).map_or(0, |stat| stat.started);
        Self { members: [(root, started)].into(), strangers: BTreeSet::new() }
    }

    /// Looks who is there now.
    pub(super) fn look(&mut self) -> Vec<i32> {
        let all: BTreeSet<i32> = numbers("/proc").into_iter().collect();
        self.strangers.retain(|process| all.contains(process));
        self.members.retain(|process, _| all.contains(process));
        let unknown = |process: &&i32| {
            !self.strangers.contains(process) && !self.members.contains_key(process)
        };
        let found =
            all.iter().filter(unknown).filter_map(|process| Some((*process, stat(*process)?)));
        let mut new: BTreeMap<i32, Stat> = found.collect();
        // A child may have a smaller number than its parent.
        loop {
            let of_us: Vec<(i32, u64)> = new
                .iter()
                .filter(|(_, stat)| self.members.contains_key(&stat.parent))
                .map(|(process, stat)| (*process, stat.started))
                .collect();
            if of_us.is_empty() {
                break;
            }
            new.retain(|process, _| of_us.iter().all(|(other, _)| other != process));
            self.members.extend(of_us);
        }
        self.strangers.extend(new.into_keys());
        self.members.keys().copied().collect()
    }

    /// How many are there still that the program did not wait for.
    pub(super) fn left(&self) -> usize {
        let is_there =
            |member: &(&i32, &u64)| stat(*member.0).is_some_and(|stat| stat.started == *member.1);
        self.members.iter().filter(is_there).count()
    }
}

fn stat(process: i32) -> Option<Stat> {
    Stat::parse(&text(process, "stat")?)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn children_of_children_belong_to_it_and_nobody_else_does() {
        let mut shell = Command::new("sh")
            .args(["-c", "sh -c 'echo begun; read line; true'; true"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let root = i32::try_from(shell.id()).unwrap();
        let mut tree = Tree::of(root);
        let mut line = String::new();
        BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let members = tree.look();
        assert_eq!(members.len(), 2, "{members:?}");
        assert!(members.contains(&root) && tree.left() == 2);
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert!(tree.look().is_empty() && tree.left() == 0);
    }
}
