//! The few system calls that `rustix` has no name for. They are issued without libc's wrapper, so
//! that `errno` is left alone: the malloc replacement must not change it.
//!
//! It holds the raw gate only; meaning, checks and error texts belong to the modules that call it.

use core::ffi::c_long;

/// Issues system call `number` with up to six arguments.
///
/// # Errors
/// The kernel's error number.
///
/// # Safety
/// The arguments must be what the kernel expects of this call, every pointer among them valid for
/// what the call reads or writes, and the call must not break memory that safe code relies on.
pub(crate) unsafe fn syscall(number: c_long, arguments: [usize; 6]) -> Result<usize, i32> {
    // SAFETY: the caller vouches for number and arguments.
    let result = unsafe { raw(number, arguments) };
    // The kernel returns -errno, and no errno exceeds 4095 (include/linux/err.h, MAX_ERRNO).
    match result {
        -4095..=-1 => Err(i32::try_from(-result).unwrap_or(libc::EIO)),
        _ => Ok(result.cast_unsigned()),
    }
}

#[cfg(target_arch = "x86_64")]
unsafe fn raw(number: c_long, [a, b, c, d, e, f]: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the caller vouches for the call; the registers are those of the x86-64 system call
    // convention, and `rcx` and `r11`, which the instruction overwrites, are declared.
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    result
}

#[cfg(target_arch = "aarch64")]
unsafe fn raw(number: c_long, [a, b, c, d, e, f]: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the caller vouches for the call; the registers are those of the AArch64 system call
    // convention, in which the kernel preserves all but `x0`.
    unsafe {
        core::arch::asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a => result,
            in("x1") b, in("x2") c, in("x3") d, in("x4") e, in("x5") f,
            options(nostack),
        );
    }
    result
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("add the system call convention of this architecture here");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_returns_what_the_kernel_says() {
        // SAFETY: getpid takes no argument and touches no memory.
        let pid = unsafe { syscall(libc::SYS_getpid, [0; 6]) };
        assert_eq!(pid.ok(), usize::try_from(std::process::id()).ok());
    }

    #[test]
    fn a_refusal_is_an_error_number() {
        // SAFETY: closing a file descriptor that cannot exist touches nothing.
        let refused = unsafe { syscall(libc::SYS_close, [usize::MAX, 0, 0, 0, 0, 0]) };
        assert_eq!(refused, Err(libc::EBADF));
    }
}
