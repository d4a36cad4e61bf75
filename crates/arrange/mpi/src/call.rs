//! One call that may be done in lines, and how it ended.

use crate::abi::Mpi;
use crate::comm::{Comm, State};
use crate::payload::NotPacked;
use crate::tally::{ByMpi, class};
use isochrone_cla::live::{Kind, Team, TeamError};
use isochrone_cla::program::{Combine, Element, Rank};
use std::ffi::c_int;

/// What collectives that combine nothing are given; they never look at it.
pub(crate) const NOTHING: Combine = Combine::Sum(Element::I32);

/// How a call ended that was not left to the MPI.
pub(crate) enum Done {
    /// In lines, of this class of sizes.
    Lines(u8),
    /// Its bytes were copied once, from rank to rank.
    Once,
    /// In lines within nodes, by the MPI between them.
    Across {
        /// Whether several leaders of each node had a part of it.
        in_parts: bool,
    },
}

/// Why a call did not end well.
pub(crate) enum Failed {
    /// The MPI refuses it on this rank, whatever others do: they are told nothing, as by the MPI.
    Wrong,
    /// It is the MPI's; other ranks have to know that before it is called.
    Mpis(ByMpi),
    /// It is the MPI's, and other ranks know.
    Known(ByMpi),
    /// The MPI refused something, on this rank.
    Refused(c_int),
    /// The root gave fewer bytes than this rank has room for, and its MPI takes that for an error.
    Short,
    /// Ranks differ, or one is gone.
    Broken(Box<TeamError>),
}

impl From<TeamError> for Failed {
    // Boxed: what a call that ends well hands on fits a register.
    #[cold]
    fn from(error: TeamError) -> Self {
        match error {
            TeamError::Gone(_) | TeamError::Unlike { .. } | TeamError::Apart | TeamError::Ahead => {
                Self::Broken(Box::new(error))
            }
            // What calls of other bytes find is not known here.
            TeamError::Full { .. } => Self::Mpis(ByMpi::Room),
            // The root said so; or nothing has been sent yet, and it fails on all ranks alike.
            _ => Self::Known(ByMpi::Others),
        }
    }
}

impl From<NotPacked> for Failed {
    /// The MPI says what is wrong when it does the call itself.
    fn from(_: NotPacked) -> Self {
        Self::Mpis(ByMpi::Operation)
    }
}

impl From<c_int> for Failed {
    fn from(code: c_int) -> Self {
        Self::Refused(code)
    }
}

/// How a call ended.
pub(crate) type Outcome = Result<Done, Failed>;

/// One call that is done in lines.
pub(crate) struct Call<'a> {
    pub(crate) mpi: &'static Mpi,
    pub(crate) comm: &'a mut Comm,
    pub(crate) root: Rank,
    pub(crate) bytes: usize,
    /// Bytes that a call in lines may have at most.
    pub(crate) bytes_max: usize,
    pub(crate) combine: Combine,
}

impl Call<'_> {
    /// Among the ranks of this communicator, which share memory; none where it spans nodes.
    #[inline]
    fn inside(&mut self) -> Option<&mut Team> {
        match &mut self.comm.state {
            State::Inside(team) => Some(team),
            _ => None,
        }
    }

    /// A collective in lines.
    ///
    /// # Safety
    /// As for [`Team::call`].
    #[inline]
    pub(crate) unsafe fn lines(
        &mut self,
        kind: Kind,
        send: *const u8,
        receive: *mut u8,
    ) -> Outcome {
        let (root, bytes, combine) = (self.root, self.bytes, self.combine);
        let team = self.inside().ok_or(Failed::Mpis(ByMpi::Nodes))?;
        let once = team.is_single(kind, bytes);
        // SAFETY: the caller vouches for the buffers.
        unsafe { team.call(kind, root, bytes, combine, send, receive) }?;
        Ok(if once { Done::Once } else { Done::Lines(class(bytes)) })
    }

    /// Whether it has more bytes than go through lines: they are copied once.
    #[inline]
    pub(crate) const fn is_large(&self) -> bool {
        self.bytes > self.bytes_max
    }

    /// Leaves a large call, in which this rank speaks first, to the MPI on all ranks: this one's bytes do not lie where
    /// others can copy them.
    #[cold]
    pub(crate) fn is_the_mpis(&mut self, kind: Kind) -> Outcome {
        let root = self.root;
        let team = self.inside().ok_or(Failed::Mpis(ByMpi::Nodes))?;
        match team.single_by_other_means(kind, root) {
            Ok(()) | Err(TeamError::Elsewhere) => Err(Failed::Known(ByMpi::Layout)),
            Err(error) => Err(error.into()),
        }
    }
}
