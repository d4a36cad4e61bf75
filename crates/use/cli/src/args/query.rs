//! An address and the core that asks for it, as `show --query` takes them.

use isochrone_units::CoreId;

/// Which latency is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) core: CoreId,
    /// A physical address.
    pub(crate) address: u64,
}

/// `0:0x1a2b3c40`; the address is hexadecimal with and without `0x`.
pub(super) fn parse_query(text: &str) -> Result<Query, String> {
    let (core, address) = text
        .split_once(':')
        .ok_or_else(|| format!("`{text}` is not CORE:ADDRESS, such as 0:0x1a2b3c40"))?;
    let core = core.parse().map_err(|_| format!("`{core}` is not a core number"))?;
    let wrong = || format!("`{address}` is not a hexadecimal physical address of 64 bits");
    let digits = address.strip_prefix("0x").unwrap_or(address);
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(wrong());
    }
    let address = u64::from_str_radix(digits, 16).map_err(|_| wrong())?;
    Ok(Query { core: CoreId(core), address })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_and_an_address() {
        let query = |core, address| Ok(Query { core: CoreId(core), address });
        assert_eq!(parse_query("0:0x1a2b3c40"), query(0, 0x1a2b_3c40));
        assert_eq!(parse_query("7:ff"), query(7, 0xff));
        assert_eq!(parse_query("65535:ffffffffffffffff"), query(65535, u64::MAX));
        for (text, why) in [
            ("", "CORE:ADDRESS"),
            ("0", "CORE:ADDRESS"),
            (":", "core number"),
            ("65536:0", "core number"),
            ("-1:0", "core number"),
            ("0:zz", "hexadecimal"),
            ("0:", "hexadecimal"),
            ("0:0x", "hexadecimal"),
            ("0:0x0x1", "hexadecimal"),
            ("0:+1", "hexadecimal"),
            ("0:10000000000000000", "64 bits"),
            ("0:1:2", "hexadecimal"),
        ] {
            let said = parse_query(text).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
    }
}
