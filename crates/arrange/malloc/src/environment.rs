//! The environment as the dynamic linker hands it to a constructor: a library that is preloaded reads its own variable
//! there, before anything of the program runs.

use core::ffi::{CStr, c_char};

/// The value of a variable.
///
/// # Safety
/// `environment` is null or a null-terminated list of C strings that stay as they are.
#[must_use]
pub unsafe fn variable(environment: *const *const c_char, name: &str) -> Option<&'static CStr> {
    if environment.is_null() {
        return None;
    }
    let mut place = environment;
    loop {
        // SAFETY: the list has not ended yet.
        let entry = unsafe { place.read() };
        if entry.is_null() {
            return None;
        }
        // SAFETY: an entry is a C string.
        let text = unsafe { CStr::from_ptr(entry) };
        let value = text.to_bytes_with_nul().strip_prefix(name.as_bytes());
        if let Some(value) = value.and_then(|rest| rest.strip_prefix(b"=")) {
            return CStr::from_bytes_with_nul(value).ok();
        }
        place = place.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_found_by_its_whole_name() {
        let list = [c"ABC=1".as_ptr(), c"AB=2=3".as_ptr(), c"A=".as_ptr(), core::ptr::null()];
        // SAFETY: such a list.
        let value = |name| unsafe { variable(list.as_ptr(), name) };
        assert_eq!([value("AB"), value("A"), value("B")], [Some(c"2=3"), Some(c""), None]);
        // SAFETY: null is allowed.
        assert_eq!(unsafe { variable(core::ptr::null(), "A") }, None);
    }
}
