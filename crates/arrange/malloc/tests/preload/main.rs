//! The preloaded library, tested from outside: it cannot be linked into a test, which it would
//! interpose.

#[cfg(test)]
mod atlas;
#[cfg(test)]
mod below;
#[cfg(test)]
mod calls;
#[cfg(test)]
mod children;
// It reads the machine code of x86-64.
#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod frames;
#[cfg(test)]
mod guest;
#[cfg(test)]
mod library;
#[cfg(test)]
mod past;
#[cfg(test)]
mod programs;
#[cfg(test)]
mod rules;
#[cfg(test)]
mod strange;
#[cfg(test)]
mod support;
#[cfg(test)]
mod vain;
#[cfg(test)]
mod watched;
