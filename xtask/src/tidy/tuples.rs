//! Arguments that hide in tuples, of which there may only be fewer.
//!
//! The rule: a parameter of a function is not taken apart where it is declared, `(core, level): (CoreId, Level)`. Who
//! calls it sees no names, and the lint that counts arguments counts one. Several values that belong together are a
//! struct with names; those that do not are arguments. Closures may, since their callers stand beside them, and so may
//! tests.

use std::path::Path;

use syn::visit::{self, Visit};
use syn::{FnArg, ImplItem, Item, Pat, Signature, Type};

use super::files::Source;
use super::modules::{attributes, of_tests};

/// How many such parameters a file may have. The number may only fall; files without a row have none.
const TUPLES: &[(&str, usize)] = &[];

/// The table's place, for messages.
const TABLE: &str = "TUPLES in xtask/src/tidy/tuples.rs";

/// Checks every file against the table.
pub(super) fn check(sources: &[Source], breaches: &mut Vec<String>) {
    held(sources, TUPLES, breaches);
}

fn held(sources: &[Source], table: &[(&str, usize)], breaches: &mut Vec<String>) {
    let row = |source: &Source| table.iter().find(|(file, _)| source.path == Path::new(file));
    for source in sources {
        let (found, allowed) = (hidden(source), row(source).map_or(0, |(_, count)| *count));
        let (shown, count) = (source.path.display(), found.len());
        if count > allowed {
            let list = found.join(", ");
            breaches.push(format!(
                "{shown}: {count} parameters hide arguments in tuples, and {allowed} may, says {TABLE}: {list}"
            ));
        } else if count < allowed {
            breaches.push(format!(
                "{shown}: {count} parameters hide arguments in tuples, and {allowed} may: lower the number in {TABLE}"
            ));
        }
    }
    let gone = |file: &str| sources.iter().all(|source| source.path != Path::new(file));
    for (file, _) in table.iter().filter(|(file, _)| gone(file)) {
        breaches.push(format!("there is no {file}: take it off {TABLE}"));
    }
}

/// The functions of a file that have such parameters, once for each.
fn hidden(source: &Source) -> Vec<String> {
    let of_tests = source.path.iter().any(|part| part == "tests" || part == "tests.rs");
    let Ok(file) = syn::parse_file(&source.text) else { return Vec::new() };
    let mut found = Tuples(Vec::new());
    if !of_tests {
        found.visit_file(&file);
    }
    found.0
}

/// Collects functions with such parameters.
struct Tuples(Vec<String>);

impl<'ast> Visit<'ast> for Tuples {
    fn visit_item(&mut self, item: &'ast Item) {
        if !of_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        if !matches!(item, ImplItem::Fn(function) if of_tests(&function.attrs)) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_signature(&mut self, signature: &'ast Signature) {
        let hides = |argument: &&FnArg| match argument {
            FnArg::Typed(typed) => is_tuple(&typed.pat) && is_tuple_type(&typed.ty),
            FnArg::Receiver(_) => false,
        };
        let count = signature.inputs.iter().filter(hides).count();
        self.0.extend(std::iter::repeat_n(signature.ident.to_string(), count));
        visit::visit_signature(self, signature);
    }
}

fn is_tuple(pattern: &Pat) -> bool {
    match pattern {
        Pat::Tuple(tuple) => !tuple.elems.is_empty(),
        Pat::Reference(inner) => is_tuple(&inner.pat),
        _ => false,
    }
}

fn is_tuple_type(of: &Type) -> bool {
    match of {
        Type::Tuple(tuple) => !tuple.elems.is_empty(),
        Type::Reference(inner) => is_tuple_type(&inner.elem),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source { path: "a/src/lib.rs".into(), text: text.to_owned() }
    }

    #[test]
    fn tuples_that_are_taken_apart_are_seen_and_others_are_not() {
        for text in [
            "fn f((a, b): (u8, u8)) {}",
            "fn f(&(a, b): &(u8, u8)) {}",
            "fn f((a, b): &mut (u8, u8)) {}",
            "impl A { fn f(&self, (a, _): (u8, u8)) {} }",
            "trait A { fn f(&self, (a, b): (u8, u8)) {} }",
            "fn g() { fn f((a, (b, c)): (u8, (u8, u8))) {} }",
        ] {
            assert_eq!(hidden(&source(text)), ["f"], "{text}");
        }
        for text in [
            "fn f(both: (u8, u8)) {}",
            "fn f(A(a): A) {}",
            "fn f(A { a, b }: A) {}",
            "fn f([a, b]: [u8; 2]) {}",
            "fn f((a, b): Pair) {}",
            "fn f((): ()) {}",
            "fn f() { let g = |(a, b): (u8, u8)| a + b; }",
            "#[cfg(test)] mod tests { fn f((a, b): (u8, u8)) {} }",
            "#[test] fn f((a, b): (u8, u8)) {}",
        ] {
            assert!(hidden(&source(text)).is_empty(), "{text}");
        }
        let test = Source { path: "a/tests/b.rs".into(), ..source("fn f((a, b): (u8, u8)) {}") };
        assert!(hidden(&test).is_empty());
    }

    #[test]
    fn a_number_may_only_fall() {
        let told = |table: &[(&str, usize)]| {
            let mut breaches = Vec::new();
            held(&[source("fn f((a, b): (u8, u8)) {}")], table, &mut breaches);
            breaches
        };
        assert!(told(&[("a/src/lib.rs", 1)]).is_empty());
        assert!(told(&[])[0].contains("1 parameters hide arguments in tuples, and 0 may"));
        assert!(told(&[("a/src/lib.rs", 2)])[0].contains("lower the number"));
        assert!(told(&[("a/src/lib.rs", 1), ("b.rs", 1)])[0].starts_with("there is no b.rs"));
    }
}
