//! The table of collectives: a row for each, from which all lists of them are made.
//!
//! A row says what a collective is called by commands, by C and by MPI's C and Fortran, which arguments it takes,
//! what of its buffers it touches, and which ways there are of doing it: a type of this folder for each. Nothing is
//! done here; ways do it, and whoever exports functions makes them from the rows.

use crate::program::Combine;

/// Calls the macro `$make` with the table of collectives.
///
/// * `names`: for commands and in Fortran, Fortran's in capitals, the function of `isochrone.h`, MPI's in C.
/// * `takes`: the family of the arguments: `nothing`; one `buffer`; two buffers of `elements` that are combined; two
///   buffers of `blocks`, one of which has a block for each rank. `root` where one rank gives or gets what the others
///   do not.
/// * `sends` and `receives`: how much of either buffer is touched at the root, and elsewhere ([`Amount`]).
/// * `ways`: the types that do it; the first that goes over a plan's shape is taken, and one goes over trees.
///
/// [`Amount`]: crate::collectives::Amount
#[macro_export]
macro_rules! each_collective {
    ($make:ident) => {
        $make! {
            /// The root's `Send` arrives in everybody else's `Receive`.
            Broadcast {
                names: bcast BCAST isochrone_broadcast MPI_Bcast,
                takes: buffer root,
                sends: One Nothing, receives: Nothing One,
                ways: Broadcast,
            }
            /// Nobody leaves before all have come.
            Barrier {
                names: barrier BARRIER isochrone_barrier MPI_Barrier,
                takes: nothing,
                sends: Nothing Nothing, receives: Nothing Nothing,
                ways: TreeBarrier Dissemination,
            }
            /// The root's `Receive` is the combination of everybody's `Send`. In a tree each rank combines its
            /// own elements with those of its children in the order in which they are served, so a result
            /// depends on the tree and on nothing else: equal calls give equal bits.
            Reduce(Combine) {
                names: reduce REDUCE isochrone_reduce MPI_Reduce,
                takes: elements root,
                sends: One One, receives: One Nothing,
                ways: Reduce,
            }
            /// As `Reduce`, and everybody gets the result, with the same bits. In an exchange, lower ranks are
            /// the left operands.
            Allreduce(Combine) {
                names: allreduce ALLREDUCE isochrone_allreduce MPI_Allreduce,
                takes: elements,
                sends: One One, receives: One One,
                ways: UpDown Doubling,
            }
            /// Rank `r` receives bytes `r * bytes ..` of the root's `Send`.
            Scatter {
                names: scatter SCATTER isochrone_scatter MPI_Scatter,
                takes: blocks root,
                sends: All Nothing, receives: One One,
                ways: Scatter,
            }
            /// Rank `r`'s `Send` arrives at bytes `r * bytes ..` of the root's `Receive`.
            Gather {
                names: gather GATHER isochrone_gather MPI_Gather,
                takes: blocks root,
                sends: One One, receives: All Nothing,
                ways: Gather,
            }
            /// Rank `r`'s `Send` arrives at bytes `r * bytes ..` of everybody's `Receive`.
            Allgather {
                names: allgather ALLGATHER isochrone_allgather MPI_Allgather,
                takes: blocks,
                sends: One One, receives: All All,
                ways: Allgather,
            }
            /// Block `r` of rank `s`'s `Send` arrives as block `s` of rank `r`'s `Receive`.
            Alltoall {
                names: alltoall ALLTOALL isochrone_alltoall MPI_Alltoall,
                takes: blocks,
                sends: All All, receives: All All,
                ways: Alltoall,
            }
            /// Rank `r`'s `Receive` is the combination of block `r` of everybody's `Send`, in the order of ranks.
            ReduceScatter(Combine) {
                names: reduce_scatter_block REDUCE_SCATTER_BLOCK isochrone_reduce_scatter MPI_Reduce_scatter_block,
                takes: elements,
                sends: All All, receives: One One,
                ways: ReduceScatter,
            }
            /// Rank `r`'s `Receive` is the combination of the `Send` of ranks 0 to `r`, in their order.
            Scan(Combine) {
                names: scan SCAN isochrone_scan MPI_Scan,
                takes: elements,
                sends: One One, receives: One One,
                ways: Scan,
            }
            /// Rank `r`'s `Receive` is the combination of the `Send` of ranks 0 to `r` - 1, in their order; that of
            /// rank 0 stays as it is.
            Exscan(Combine) {
                names: exscan EXSCAN isochrone_exscan MPI_Exscan,
                takes: elements,
                sends: One One, receives: One One,
                ways: Exscan,
            }
        }
    };
}

/// How much of a buffer a rank's program touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// None of it.
    Nothing,
    /// The bytes of the call.
    One,
    /// The bytes of the call for each rank.
    All,
}

impl Amount {
    /// The same in bytes, where `bytes` go from or to each of `ranks` ranks.
    #[must_use]
    pub fn bytes(self, bytes: u32, ranks: u16) -> u32 {
        match self {
            Self::Nothing => 0,
            Self::One => bytes,
            Self::All => bytes * u32::from(ranks),
        }
    }
}

/// What of its two buffers a rank's program touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touched {
    /// So much of `Send` is read.
    pub send: Amount,
    /// So much of `Receive` is written.
    pub receive: Amount,
}

macro_rules! kinds {
    ($(
        $(#[$doc:meta])* $kind:ident $(($with:ident))? {
            names: $name:ident $fortran:ident $c:ident $mpi:ident,
            takes: $takes:ident $($root:ident)?,
            sends: $sends:ident $sends_else:ident, receives: $receives:ident $receives_else:ident,
            ways: $($way:ident)+,
        }
    )*) => {
        /// What is done together.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Collective {
            $( $(#[$doc])* $kind $(($with))?, )*
        }

        impl Collective {
            /// The same without a reduction.
            #[must_use]
            pub const fn kind(self) -> Kind {
                match self {
                    $( Self::$kind { .. } => Kind::$kind, )*
                }
            }
        }

        /// A collective without its arguments.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Kind {
            $( $(#[$doc])* $kind, )*
        }

        impl Kind {
            /// All of them.
            pub const ALL: [Self; Self::COUNT] = [$( Self::$kind ),*];
            /// How many there are.
            pub const COUNT: usize = [$( stringify!($kind) ),*].len();

            /// The name that commands and figures use.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $( Self::$kind => stringify!($name), )*
                }
            }

            /// Whether one rank gives or gets what the others do not.
            #[must_use]
            pub const fn rooted(self) -> bool {
                match self {
                    $( Self::$kind => {
                        const ROOT: &[&str] = &[$( stringify!($root) )?];
                        ROOT.len() == 1
                    } )*
                }
            }

            /// The same with a reduction, where there is one.
            #[must_use]
            #[allow(unused_variables, reason = "a table may have no reduction")]
            pub fn collective(self, combine: Combine) -> Collective {
                match self {
                    $( Self::$kind => Collective::$kind $((<$with>::from(combine)))?, )*
                }
            }

            /// How much of its buffers a rank's program touches.
            #[must_use]
            pub const fn touched(self, at_root: bool) -> Touched {
                match (self, at_root) {
                    $(
                        (Self::$kind, true) => {
                            Touched { send: Amount::$sends, receive: Amount::$receives }
                        }
                        (Self::$kind, false) => {
                            Touched { send: Amount::$sends_else, receive: Amount::$receives_else }
                        }
                    )*
                }
            }
        }
    };
}
each_collective!(kinds);

impl Collective {
    /// All of them; those that combine do so by `combine`.
    #[must_use]
    pub fn all(combine: Combine) -> [Self; Kind::COUNT] {
        Kind::ALL.map(|kind| kind.collective(combine))
    }

    /// Whether one rank gives or gets what the others do not.
    #[must_use]
    pub const fn rooted(self) -> bool {
        self.kind().rooted()
    }

    /// How elements are combined, if they are.
    #[must_use]
    pub const fn combine(self) -> Option<Combine> {
        match self {
            Self::Reduce(combine)
            | Self::Allreduce(combine)
            | Self::ReduceScatter(combine)
            | Self::Scan(combine)
            | Self::Exscan(combine) => Some(combine),
            _ => None,
        }
    }

    /// The name that commands and figures use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.kind().name()
    }
}
