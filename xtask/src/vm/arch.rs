//! What differs between the kinds of processors that are emulated: emulator, consoles, the kernel's package.

use std::path::Path;

use anyhow::{Result, bail};

/// A kind of processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arch {
    X86,
    Arm(Pages),
}

/// Pages of a kernel for Arm's processors. Debian has none with pages of 64 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pages {
    Kib4,
    Kib16,
}

impl Arch {
    /// The one of this name.
    pub(super) fn named(name: &str) -> Result<Self> {
        match name {
            "x86_64" => Ok(Self::X86),
            "aarch64" => Ok(Self::Arm(Pages::Kib4)),
            "aarch64-16k" => Ok(Self::Arm(Pages::Kib16)),
            other => bail!("no kind of processor {other:?}: x86_64, aarch64, aarch64-16k"),
        }
    }

    /// Whether it is of another kind than those that this gate is for.
    pub(super) fn is_arm(self) -> bool {
        self != Self::X86
    }

    /// Bytes of the kernel's pages.
    pub(super) fn page_bytes(self) -> u32 {
        match self {
            Self::X86 | Self::Arm(Pages::Kib4) => 4 << 10,
            Self::Arm(Pages::Kib16) => 16 << 10,
        }
    }

    /// Where kernel, programs and what they wrote are kept.
    pub(super) fn folder(self) -> &'static str {
        match self {
            Self::X86 => "target/vm",
            Self::Arm(_) => "target/vm-arm",
        }
    }

    /// The emulator, and Debian's package of it.
    pub(super) fn emulator(self) -> (&'static str, &'static str) {
        match self {
            Self::X86 => ("qemu-system-x86_64", "qemu-system-x86"),
            Self::Arm(_) => ("qemu-system-aarch64", "qemu-system-arm"),
        }
    }

    /// The board and the processor.
    pub(super) fn machine(self) -> &'static [&'static str] {
        match self {
            Self::X86 => &["-cpu", "max"],
            // More than eight cores need the newer interrupt controller. This processor has atomics of a single
            // instruction, and a name that the command knows. Its counter goes by 16 ns unless told otherwise; that of
            // Armv9 goes by one, so that single loads are timed.
            Self::Arm(_) => {
                &["-machine", "virt,gic-version=3", "-cpu", "neoverse-n1,cntfrq=1000000000"]
            }
        }
    }

    /// What only its kernel is told: the console of kernel and first process, and no trial of timers that one kind has.
    /// A kernel hands words that it does not know to the first process.
    pub(super) fn settings(self) -> &'static str {
        match self {
            Self::X86 => "console=ttyS0 no_timer_check",
            Self::Arm(_) => "console=ttyAMA0",
        }
    }

    /// The console on which files go out, as the emulator is told of it. `tests/vm/src/orders.rs` has its name.
    pub(super) fn second_console(self, to: &Path) -> Vec<String> {
        let to = to.display();
        match self {
            Self::X86 => vec!["-serial".to_owned(), format!("file:{to}")],
            // That board has one serial port; another comes as a card.
            Self::Arm(_) => {
                let file = format!("file,id=out,path={to}");
                ["-chardev", &file, "-device", "pci-serial,chardev=out"].map(str::to_owned).to_vec()
            }
        }
    }

    /// How long things take here, against x86-64: every instruction is translated from another kind.
    pub(super) fn patience(self) -> u32 {
        match self {
            Self::X86 => 1,
            Self::Arm(_) => 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_names_and_pages() {
        let of = |name| Arch::named(name).expect("it is there");
        assert_eq!((of("x86_64").is_arm(), of("aarch64-16k").is_arm()), (false, true));
        assert_eq!((of("aarch64").page_bytes(), of("aarch64-16k").page_bytes()), (4096, 16384));
        let error = Arch::named("aarch64-64k").expect_err("Debian has none").to_string();
        assert!(error.contains("aarch64-16k"), "{error}");
    }
}
