//! Cores in clusters that share a cache, clusters in regions, regions in sockets: a large server.
//!
//! A core finds a line that its cluster has in its own slices; what it costs follows from places on the cluster's ring.
//! Memory is as far as its region, in hops. A line that another cluster's core holds comes by way of its home, which
//! lies in the region of the line's memory. Nothing here knows addresses.

/// Hops between two regions of a socket that are neighbours on its square of four.
const IN_SOCKET_HOPS: u16 = 1;
/// Hops from one socket to the next on their ring.
const SOCKET_HOPS: u16 = 3;
/// Regions of a socket in one row of its square.
const ROW: u16 = 2;

/// Where cores, slices and controllers of such a machine are, and what ways cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Clusters {
    /// Physical cores by cluster; their places are stops of its ring.
    pub cores: Vec<Seat>,
    /// Clusters by region.
    pub clusters: Vec<Seat>,
    /// Regions by socket.
    pub regions: Vec<Seat>,
    /// Slices by region. A line of the slice at place `i` is at stop `i` of the ring of whichever cluster has it.
    pub slices: Vec<Seat>,
    /// Memory controllers by region.
    pub controllers: Vec<Seat>,
    /// Stops of a cluster's ring.
    pub stops: u16,
    /// One step on a cluster's ring, one way, cycles.
    pub step_cycles: f64,
    /// From one cluster of a region to the next, cycles.
    pub cluster_cycles: f64,
    /// One hop between regions, there and back, cycles.
    pub hop_cycles: f64,
}

/// One of several in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// The group: a cluster, a region, a socket.
    pub group: u16,
    /// Its place there, from 0.
    pub place: u16,
}

impl Seat {
    /// All of a list that says the group of each, those of one group together.
    #[must_use]
    pub fn all(groups: &[u16]) -> Vec<Self> {
        let mut seats: Vec<Self> = Vec::with_capacity(groups.len());
        for &group in groups {
            let before = seats.last().filter(|last| last.group == group);
            let place = before.map_or(0, |last| last.place + 1);
            seats.push(Self { group, place });
        }
        seats
    }
}

impl Clusters {
    fn cluster(&self, core: usize) -> Seat {
        self.clusters[usize::from(self.cores[core].group)]
    }

    /// The region whose memory is nearest to a core.
    #[must_use]
    pub fn region_of(&self, core: u16) -> u16 {
        self.cluster(usize::from(core)).group
    }

    /// Hops from one region to another: on a square within a socket, else over the ring of sockets.
    #[must_use]
    pub fn hops(&self, from: u16, to: u16) -> u16 {
        let [a, b] = [from, to].map(|region| self.regions[usize::from(region)]);
        if a.group != b.group {
            let sockets = self.regions.last().map_or(1, |last| last.group + 1);
            let way = a.group.abs_diff(b.group);
            return SOCKET_HOPS * way.min(sockets - way);
        }
        let [a, b] = [a.place, b.place];
        IN_SOCKET_HOPS * ((a % ROW).abs_diff(b % ROW) + (a / ROW).abs_diff(b / ROW))
    }

    fn way(&self, from: u16, to: u16) -> f64 {
        self.hop_cycles * f64::from(self.hops(from, to))
    }

    /// From a core to a slice's stop on the ring of its own cluster, and back.
    pub(super) fn llc_route(&self, core: usize, slice: usize) -> f64 {
        let [own, at] = [self.cores[core], self.slices[slice]].map(|seat| seat.place % self.stops);
        let way = own.abs_diff(at);
        2.0 * self.step_cycles * f64::from(way.min(self.stops - way))
    }

    /// Past the slice to the controller: hops to its region, and the clusters on the way to its place there.
    pub(super) fn dram_route(&self, core: usize, slice: usize, controller: usize) -> f64 {
        let (own, at) = (self.cluster(core), self.controllers[controller]);
        let clusters = self.cluster_cycles * f64::from(own.place.abs_diff(at.place));
        self.llc_route(core, slice) + clusters + self.way(own.group, at.group)
    }

    /// From a core to the home of a line, one way.
    pub(super) fn to_home(&self, core: usize, slice: usize) -> f64 {
        let (own, home) = (self.cluster(core), self.slices[slice]);
        0.5 * self.way(own.group, home.group) + self.step_cycles * f64::from(home.place)
    }

    /// A line that `asker` gets out of `owner`'s cache: within the cluster, or by way of its home.
    pub(super) fn forward_route(&self, owner: usize, asker: usize, slice: usize) -> f64 {
        if self.cores[owner].group == self.cores[asker].group {
            return 2.0 * self.step_cycles * f64::from(self.slices[slice].place);
        }
        let [a, b] = [owner, asker].map(|core| self.cluster(core).group);
        self.to_home(asker, slice)
            + self.to_home(owner, slice)
            + 2.0 * self.cluster_cycles
            + 0.5 * self.way(a, b)
    }

    /// What does not fit together, in words; `None` if all does.
    pub(super) fn defect(&self) -> Option<String> {
        let below = |seats: &[Seat], of: &[Seat]| {
            seats.iter().all(|seat| usize::from(seat.group) < of.len())
        };
        let sockets = self.regions.iter().map(|region| region.group);
        let whole = below(&self.cores, &self.clusters)
            && below(&self.clusters, &self.regions)
            && below(&self.slices, &self.regions)
            && below(&self.controllers, &self.regions)
            && sockets.is_sorted()
            && self.stops > 0;
        (!whole).then(|| {
            "name clusters, regions and stops that are there, and list regions by socket".to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many, each group of so many.
    fn seats(count: u16, each: u16) -> Vec<Seat> {
        Seat::all(&(0..count).map(|one| one / each).collect::<Vec<u16>>())
    }

    /// Two sockets of four regions, each of two clusters of two cores.
    fn server() -> Clusters {
        Clusters {
            cores: seats(32, 2),
            clusters: seats(16, 2),
            regions: seats(8, 4),
            slices: seats(32, 4),
            controllers: seats(16, 2),
            stops: 4,
            step_cycles: 2.0,
            cluster_cycles: 10.0,
            hop_cycles: 20.0,
        }
    }

    #[test]
    fn regions_are_apart_by_hops() {
        let server = server();
        assert_eq!([0, 1, 2, 3].map(|to| server.hops(0, to)), [0, 1, 1, 2]);
        assert_eq!([4, 7].map(|to| server.hops(0, to)), [3, 3]);
        let three = Clusters { regions: seats(3, 1), ..server };
        assert_eq!(three.hops(0, 2), 3, "sockets are on a ring");
    }

    #[test]
    fn every_cluster_has_lines_at_its_own_ring() {
        let server = server();
        for core in [1, 3, 31] {
            let ways = [0, 1, 2, 3].map(|slice| server.llc_route(core, slice));
            assert_eq!(ways, [4.0, 0.0, 4.0, 8.0], "the second core of its cluster");
        }
    }

    #[test]
    fn memory_and_lines_of_others_are_as_far_as_their_regions() {
        let server = server();
        assert_eq!(server.dram_route(0, 0, 0), 0.0);
        assert_eq!(server.dram_route(0, 0, 2), 20.0, "one hop");
        assert_eq!(server.dram_route(2, 0, 0), 10.0, "the second cluster");
        // Within a cluster the home is not asked; from another one it is, and both ways count.
        assert_eq!(server.forward_route(30, 31, 0), 0.0);
        assert_eq!(server.forward_route(0, 2, 0), 20.0);
        assert_eq!(server.forward_route(0, 4, 0), 10.0 + 20.0 + 10.0);
    }

    #[test]
    fn lists_that_do_not_fit_are_named() {
        assert_eq!(server().defect(), None);
        let outside = Clusters { clusters: seats(16, 1), ..server() };
        assert!(outside.defect().is_some_and(|why| why.contains("clusters")));
    }
}
