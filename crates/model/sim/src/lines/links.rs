//! Links between sockets: one line at a time in each direction.

/// When each link is free again.
#[derive(Clone, Debug, Default)]
pub(super) struct Links {
    sockets: usize,
    /// For each socket the links to all others.
    free_ps: Vec<u64>,
}

impl Links {
    /// Free links between all of these sockets.
    pub(super) fn of(sockets: &[u16]) -> Self {
        let sockets = sockets.iter().max().map_or(0, |&last| usize::from(last) + 1);
        Self { sockets, free_ps: vec![0; sockets * sockets] }
    }

    /// All are free.
    pub(super) fn clear(&mut self) {
        self.free_ps.fill(0);
    }

    /// A line enters the link from one socket to another at `now_ps` and keeps it for `hold_ps`; how long
    /// it has to wait before it.
    pub(super) fn wait(&mut self, from: u16, to: u16, now_ps: u64, hold_ps: u64) -> u64 {
        if hold_ps == 0 || from == to {
            return 0;
        }
        let free = &mut self.free_ps[usize::from(from) * self.sockets + usize::from(to)];
        let begin = now_ps.max(*free);
        *free = begin + hold_ps;
        begin - now_ps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_carries_one_line_at_a_time_each_way() {
        let mut links = Links::of(&[0, 0, 1]);
        assert_eq!(links.wait(0, 1, 100, 3), 0);
        assert_eq!(links.wait(0, 1, 101, 3), 2);
        assert_eq!(links.wait(0, 1, 101, 3), 5);
        assert_eq!(links.wait(1, 0, 101, 3), 0, "the other way is another link");
        assert_eq!(links.wait(0, 1, 200, 3), 0);
    }
}
