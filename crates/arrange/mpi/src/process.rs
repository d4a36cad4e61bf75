//! A process of an MPI job that can do a collective either way: by the MPI, and by the library that is
//! preloaded. `isochrone bench coll` times both in one job, on one communicator.

use crate::abi::{Functions, Handle, Mpi};
use isochrone_cla::live::Kind;
use std::ffi::{CStr, c_int, c_void};

/// Who does a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The library that is preloaded.
    Lines,
    /// The MPI.
    Mpi,
}

/// A collective with its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct What {
    /// Which one.
    pub kind: Kind,
    /// Bytes from or to each rank, a multiple of eight. Reductions sum 64-bit integers.
    pub bytes: usize,
}

/// What a process gives and gets, with room for every rank's bytes.
#[derive(Clone, Debug)]
pub struct Buffers {
    /// What is given.
    pub send: Vec<u64>,
    /// What is got.
    pub receive: Vec<u64>,
    /// Bytes of one rank at most.
    bytes: usize,
}

impl Buffers {
    /// Room for `bytes` bytes from or to each of `ranks` ranks.
    #[must_use]
    pub fn new(ranks: u16, bytes: usize) -> Self {
        let words = bytes.div_ceil(8) * usize::from(ranks);
        Self { send: vec![0; words], receive: vec![0; words], bytes }
    }
}

/// One process of a job.
#[derive(Debug)]
pub struct Process {
    mpi: Mpi,
    preloaded: Functions,
    rank: u16,
    ranks: u16,
    sum: Handle,
    integer: Handle,
}

impl Process {
    /// Begins as a process of a job: loads the MPI in the library `name` and initialises it.
    ///
    /// # Errors
    /// Words that say what is missing.
    pub fn begin(name: &CStr) -> Result<Self, String> {
        let mpi = Mpi::load(name)?;
        let preloaded = mpi.preloaded()?;
        let f = mpi.functions();
        // SAFETY: it was not initialised yet, and may be without arguments (MPI 3.0, section 8.7).
        let failed = unsafe { (f.init)(std::ptr::null_mut(), std::ptr::null_mut()) };
        if failed != 0 {
            return Err(format!("MPI_Init failed with {failed}; start this by the MPI's mpirun"));
        }
        let (mut rank, mut ranks): (c_int, c_int) = (0, 0);
        // SAFETY: the MPI is initialised, and the answer has room.
        unsafe { (f.comm_rank)(mpi.world(), &raw mut rank) };
        // SAFETY: as above.
        unsafe { (f.comm_size)(mpi.world(), &raw mut ranks) };
        let small = |n| u16::try_from(n).map_err(|_| "too many ranks".to_owned());
        Ok(Self {
            preloaded,
            rank: small(rank)?,
            ranks: small(ranks)?,
            sum: mpi.named(c"ompi_mpi_op_sum", 0x5800_0003),
            integer: mpi.named(c"ompi_mpi_int64_t", 0x4c00_083a),
            mpi,
        })
    }

    /// This process's rank.
    #[must_use]
    pub const fn rank(&self) -> u16 {
        self.rank
    }

    /// Processes of the job.
    #[must_use]
    pub const fn ranks(&self) -> u16 {
        self.ranks
    }

    /// What the MPI says of itself.
    #[must_use]
    pub fn version(&self) -> &str {
        self.mpi.version()
    }

    /// One collective of all ranks.
    ///
    /// # Errors
    /// The MPI's error code.
    ///
    /// # Panics
    /// If the buffers were made for fewer bytes or ranks.
    #[inline]
    pub fn call(&self, by: By, what: What, root: u16, buffers: &mut Buffers) -> Result<(), c_int> {
        let is_root = root == self.rank;
        self.call_on(self.mpi.world(), by, what, root, is_root, buffers)
    }

    /// One collective of this rank alone, with itself as the root: in lines only where that was
    /// [asked for](crate::Config::alone).
    ///
    /// # Errors
    /// The MPI's error code.
    ///
    /// # Panics
    /// If the buffers were made for fewer bytes.
    #[inline]
    pub fn call_alone(&self, by: By, what: What, buffers: &mut Buffers) -> Result<(), c_int> {
        self.call_on(self.mpi.own(), by, what, 0, true, buffers)
    }

    #[inline]
    fn call_on(
        &self,
        comm: Handle,
        by: By,
        what: What,
        root: u16,
        is_root: bool,
        buffers: &mut Buffers,
    ) -> Result<(), c_int> {
        let f = match by {
            By::Lines => &self.preloaded,
            By::Mpi => self.mpi.functions(),
        };
        let needed = what.bytes.div_ceil(8) * usize::from(self.ranks);
        let room = buffers.send.len().min(buffers.receive.len());
        assert!(what.bytes <= buffers.bytes && needed <= room, "{what:?} of {} words", room);
        let count = c_int::try_from(what.bytes / 8).unwrap_or(0);
        let (root, kind) = (c_int::from(root), self.integer);
        let send: *mut c_void = buffers.send.as_mut_ptr().cast();
        let receive: *mut c_void = buffers.receive.as_mut_ptr().cast();
        let code = match what.kind {
            Kind::Broadcast => {
                let place = if is_root { send } else { receive };
                // SAFETY: a buffer of this process with room for the bytes, on every rank.
                unsafe { (f.bcast)(place, count, kind, root, comm) }
            }
            // SAFETY: no memory is touched.
            Kind::Barrier => unsafe { (f.barrier)(comm) },
            // SAFETY: two buffers of this process with room for the bytes.
            Kind::Reduce => unsafe { (f.reduce)(send, receive, count, kind, self.sum, root, comm) },
            // SAFETY: as above.
            Kind::Allreduce => unsafe { (f.allreduce)(send, receive, count, kind, self.sum, comm) },
            // SAFETY: two buffers of this process with room for the bytes of all ranks.
            Kind::Scatter => unsafe {
                (f.scatter)(send, count, kind, receive, count, kind, root, comm)
            },
            // SAFETY: as above.
            Kind::Gather => unsafe {
                (f.gather)(send, count, kind, receive, count, kind, root, comm)
            },
            // SAFETY: as above.
            Kind::Allgather => unsafe {
                (f.allgather)(send, count, kind, receive, count, kind, comm)
            },
            // SAFETY: as above.
            Kind::Alltoall => unsafe {
                (f.alltoall)(send, count, kind, receive, count, kind, comm)
            },
            // SAFETY: as above.
            Kind::ReduceScatter => unsafe {
                (f.reduce_scatter_block)(send, receive, count, kind, self.sum, comm)
            },
            // SAFETY: two buffers of this process with room for the bytes.
            Kind::Scan => unsafe { (f.scan)(send, receive, count, kind, self.sum, comm) },
            // SAFETY: as above.
            Kind::Exscan => unsafe { (f.exscan)(send, receive, count, kind, self.sum, comm) },
        };
        if code == 0 { Ok(()) } else { Err(code) }
    }

    /// Gives `numbers` of rank 0 to all, by the MPI.
    ///
    /// # Errors
    /// The MPI's error code.
    pub fn tell(&self, numbers: &mut [u64]) -> Result<(), c_int> {
        let bytes = c_int::try_from(size_of_val(numbers)).unwrap_or(0);
        let first = numbers.as_mut_ptr().cast();
        // SAFETY: a buffer of that many bytes, on every rank.
        let code = unsafe {
            (self.mpi.functions().bcast)(first, bytes, self.mpi.byte(), 0, self.mpi.world())
        };
        if code == 0 { Ok(()) } else { Err(code) }
    }

    /// Everybody's `numbers`, rank after rank, at rank 0 (nothing at others), by the MPI.
    ///
    /// # Errors
    /// The MPI's error code.
    pub fn collect(&self, numbers: &[u64]) -> Result<Vec<u64>, c_int> {
        let bytes = c_int::try_from(size_of_val(numbers)).unwrap_or(0);
        let blocks = if self.rank == 0 { usize::from(self.ranks) } else { 0 };
        let mut all = vec![0_u64; numbers.len() * blocks];
        let (send, receive) = (numbers.as_ptr().cast_mut().cast(), all.as_mut_ptr().cast());
        let (byte, world) = (self.mpi.byte(), self.mpi.world());
        let gather = self.mpi.functions().gather;
        // SAFETY: a buffer of that many bytes on every rank, and at rank 0 room for those of all.
        let code = unsafe { gather(send, bytes, byte, receive, bytes, byte, 0, world) };
        if code == 0 { Ok(all) } else { Err(code) }
    }

    /// Ends the MPI, by the library that is preloaded.
    pub fn end(self) {
        // SAFETY: the MPI is initialised and nothing is under way.
        unsafe { (self.preloaded.finalize)() };
    }
}
