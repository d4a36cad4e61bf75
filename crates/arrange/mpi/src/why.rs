//! Why a communicator is left to the MPI: reasons that ranks tell one another.

use std::ffi::c_int;

/// Why a communicator is left to the MPI. Ranks agree on the first one of this list that any of them has, so
/// that each can say what is true of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Why {
    /// A collective call of our own failed.
    Failed,
    Off,
    Told,
    Crowded,
    NoKey,
    Many,
    Packs,
    NoMemory,
    Scattered,
    Inter,
    Alone,
    TooManyRanks,
    /// It may be worth it later.
    NotYet,
}

impl Why {
    /// What a rank says that has no reason: more than all of them.
    const FIT: c_int = c_int::MAX;
    const ALL: [Self; 13] = [
        Self::Failed,
        Self::Off,
        Self::Told,
        Self::Crowded,
        Self::NoKey,
        Self::Many,
        Self::Packs,
        Self::NoMemory,
        Self::Scattered,
        Self::Inter,
        Self::Alone,
        Self::TooManyRanks,
        Self::NotYet,
    ];

    /// What a rank says; the least of all is what is agreed on.
    pub(crate) const fn said(mine: Result<(), Self>) -> c_int {
        match mine {
            Ok(()) => Self::FIT,
            Err(why) => why as c_int,
        }
    }

    /// What all ranks agree on, of the least that was said; none where that could not be told.
    pub(crate) fn agreed(least: Option<c_int>) -> Result<(), Self> {
        match least {
            Some(Self::FIT) => Ok(()),
            Some(said) => {
                Err(Self::ALL.into_iter().find(|&why| why as c_int == said).unwrap_or(Self::Failed))
            }
            None => Err(Self::Failed),
        }
    }

    /// For a report.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Failed => "the MPI failed when its ranks agreed on it",
            Self::Off => "it was switched off",
            Self::Told => "its ranks were told differently what is done in lines",
            Self::Crowded => "the job has more ranks on a node than cores",
            Self::NoKey => "this MPI does not say when a communicator ends",
            Self::Many => "as many communicators are in lines already as may be",
            Self::Packs => "this MPI packs data in a form of its own",
            Self::NoMemory => "a rank of it cannot have the shared memory",
            Self::Scattered => "no two ranks of it share a node",
            Self::Inter => "it is an intercommunicator",
            Self::Alone => "it has one rank",
            Self::TooManyRanks => "it has more than 65535 ranks",
            Self::NotYet => "its calls would not have saved what taking it over costs",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_agree_on_the_first_reason_that_any_of_them_has() {
        let agreed =
            |all: &[Result<(), Why>]| Why::agreed(all.iter().map(|&mine| Why::said(mine)).min());
        assert_eq!(agreed(&[Ok(()), Ok(())]), Ok(()));
        for why in Why::ALL {
            assert_eq!(agreed(&[Ok(()), Err(why), Ok(())]), Err(why));
            // What may change counts for less than what stays.
            assert_eq!(agreed(&[Err(Why::NotYet), Err(why)]), Err(why));
        }
        assert_eq!(Why::agreed(None), Err(Why::Failed));
        let mut words: Vec<_> = Why::ALL.iter().map(|why| why.words()).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Why::ALL.len(), "each has words of its own");
    }
}
