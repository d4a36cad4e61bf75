//! The modules of a crate as its files declare them, and which file a path leads to. Only what is compiled without
//! tests counts. It reads files and judges nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItem, Item, ItemMod, ItemUse, Macro, Meta, UseTree, Visibility};

/// How many imports of imports are followed: a glob and its inverse would go on for ever.
const HOPS_MAX: usize = 12;

/// A path as it is written, segment by segment.
type Words = Vec<String>;

/// What `use` brings into a module.
#[derive(Debug)]
struct Import {
    /// The name that it has there.
    name: String,
    path: Words,
    /// Whether it is shown further: then the module itself need not use it.
    shown: bool,
}

/// A module, in a file of its own or inside of one.
#[derive(Debug)]
struct Module {
    file: PathBuf,
    parent: usize,
    children: BTreeMap<String, usize>,
    items: BTreeSet<String>,
    imports: Vec<Import>,
    globs: Vec<Words>,
    /// Paths in its code.
    used: BTreeSet<Words>,
}

/// All modules that one first file declares; the first of them is its own.
#[derive(Debug)]
pub(super) struct Modules(Vec<Module>);

/// What a file takes from another one: the names that it calls for.
pub(super) type Ties = BTreeMap<(PathBuf, PathBuf), BTreeSet<String>>;

impl Modules {
    /// The modules below `src/lib.rs` or `src/main.rs`.
    pub(super) fn of(entry: &Path) -> Result<Self> {
        let mut modules = Self(Vec::new());
        let folder = entry.parent().unwrap_or(entry).to_path_buf();
        modules.file(entry, &folder, 0)?;
        Ok(modules)
    }

    /// Reads a file whose modules lie in `folder`, and what it declares. Gives its place.
    fn file(&mut self, file: &Path, folder: &Path, parent: usize) -> Result<usize> {
        let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let parsed = syn::parse_file(&text).with_context(|| file.display().to_string())?;
        self.module(file, folder, parent, &parsed.items)
    }

    fn module(
        &mut self,
        file: &Path,
        folder: &Path,
        parent: usize,
        items: &[Item],
    ) -> Result<usize> {
        let own = self.0.len();
        self.0.push(Module {
            file: file.to_path_buf(),
            parent,
            children: BTreeMap::new(),
            items: BTreeSet::new(),
            imports: Vec::new(),
            globs: Vec::new(),
            used: BTreeSet::new(),
        });
        for item in items.iter().filter(|item| !of_tests(attributes(item))) {
            match item {
                Item::Mod(declared) => {
                    let place = self.declared(declared, file, folder, own)?;
                    self.0[own].children.extend(place.map(|at| (declared.ident.to_string(), at)));
                }
                Item::Use(item) => self.0[own].take_in(item),
                _ => {
                    self.0[own].items.extend(name(item));
                    let mut paths = Paths(&mut self.0[own].used);
                    paths.visit_item(item);
                }
            }
        }
        Ok(own)
    }

    fn declared(
        &mut self,
        item: &ItemMod,
        file: &Path,
        folder: &Path,
        parent: usize,
    ) -> Result<Option<usize>> {
        let inside = folder.join(item.ident.to_string());
        if let Some((_, items)) = &item.content {
            return self.module(file, &inside, parent, items).map(Some);
        }
        let candidates = [inside.with_extension("rs"), inside.join("mod.rs")];
        match candidates.into_iter().find(|candidate| candidate.is_file()) {
            Some(found) => self.file(&found, &inside, parent).map(Some),
            None => Ok(None),
        }
    }

    /// Which file takes what from which other one. What a module shows further, it does not take.
    pub(super) fn ties(&self) -> Ties {
        let mut ties = Ties::new();
        for (at, module) in self.0.iter().enumerate() {
            let imported = module.imports.iter().filter(|import| !import.shown);
            let paths = imported.map(|import| &import.path).chain(&module.used);
            for path in paths {
                // A single word in the code is as often a variable as a module.
                let found = match path.as_slice() {
                    [one] => self.taken_in(at, one, &[], 0),
                    _ => self.origin(at, path, 0),
                };
                let Some(to) = found.map(|found| &self.0[found].file) else { continue };
                if *to != module.file {
                    let tie = ties.entry((module.file.clone(), to.clone())).or_default();
                    tie.extend(path.last().cloned());
                }
            }
        }
        ties
    }

    /// The module that has what a path means in a module; `None` for what is not of this crate.
    fn origin(&self, at: usize, path: &[String], hops: usize) -> Option<usize> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => self.inside(0, rest, hops),
            "self" => self.inside(at, rest, hops),
            "super" => self.inside(self.0[at].parent, rest, hops),
            name => self.named(at, name, rest, hops),
        }
    }

    fn inside(&self, at: usize, path: &[String], hops: usize) -> Option<usize> {
        match path.split_first() {
            None => Some(at),
            Some((first, rest)) if first == "super" => self.inside(self.0[at].parent, rest, hops),
            Some((first, rest)) if first == "self" => self.inside(at, rest, hops),
            // What no line declares is made there by a macro.
            Some((first, rest)) => self.named(at, first, rest, hops).or(Some(at)),
        }
    }

    fn named(&self, at: usize, name: &str, rest: &[String], hops: usize) -> Option<usize> {
        if let Some(child) = self.0[at].children.get(name) {
            return self.inside(*child, rest, hops);
        }
        if self.0[at].items.contains(name) {
            return Some(at);
        }
        self.taken_in(at, name, rest, hops)
    }

    /// The module that has what an import gives a name to.
    fn taken_in(&self, at: usize, name: &str, rest: &[String], hops: usize) -> Option<usize> {
        if hops > HOPS_MAX {
            return None;
        }
        let module = &self.0[at];
        if let Some(import) = module.imports.iter().find(|import| import.name == name) {
            let path = [&import.path, rest].concat();
            return self.origin(at, &path, hops + 1);
        }
        module.globs.iter().find_map(|glob| {
            let shown = self.origin(at, glob, hops + 1).filter(|shown| *shown != at)?;
            self.named(shown, name, rest, hops + 1)
        })
    }
}

impl Module {
    fn take_in(&mut self, item: &ItemUse) {
        let shown = !matches!(item.vis, Visibility::Inherited);
        for (path, name) in leaves(&item.tree) {
            match name {
                Some(name) => self.imports.push(Import { name, path, shown }),
                None => self.globs.push(path),
            }
        }
    }
}

/// Every path of a `use`, with the name that it gets; none for a glob.
fn leaves(tree: &UseTree) -> Vec<(Words, Option<String>)> {
    let own = |ident: &syn::Ident| (vec![ident.to_string()], Some(ident.to_string()));
    match tree {
        UseTree::Name(name) => vec![own(&name.ident)],
        UseTree::Rename(name) => {
            vec![(vec![name.ident.to_string()], Some(name.rename.to_string()))]
        }
        UseTree::Glob(_) => vec![(Vec::new(), None)],
        UseTree::Group(group) => group.items.iter().flat_map(leaves).collect(),
        UseTree::Path(path) => {
            let first = path.ident.to_string();
            let longer = |(rest, name): (Words, Option<String>)| {
                // `a::{self}` is called `a`.
                let name = name.map(|name| if name == "self" { first.clone() } else { name });
                ([vec![first.clone()], rest].concat(), name)
            };
            leaves(&path.tree).into_iter().map(longer).collect()
        }
    }
}

/// Collects the paths in code.
struct Paths<'a>(&'a mut BTreeSet<Words>);

impl<'ast> Visit<'ast> for Paths<'_> {
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

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.0.insert(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.0.extend(leaves(&item.tree).into_iter().map(|(path, _)| path));
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        visit::visit_path(self, &called.path);
        in_tokens(called.tokens.clone(), self.0);
    }

    // `pub(in crate::a)` says who may look, and takes nothing.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}
}

/// Paths of two words and more in what a macro is called with: `a :: b`.
fn in_tokens(tokens: TokenStream, paths: &mut BTreeSet<Words>) {
    let mut path: Words = Vec::new();
    let mut colons = 0;
    let mut keep = |path: &mut Words| {
        if path.len() > 1 {
            paths.insert(std::mem::take(path));
        }
        path.clear();
    };
    let mut groups = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Ident(word) => {
                if colons != 2 {
                    keep(&mut path);
                }
                path.push(word.to_string());
                colons = 0;
            }
            TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
            other => {
                keep(&mut path);
                colons = 0;
                if let TokenTree::Group(group) = other {
                    groups.push(group.stream());
                }
            }
        }
    }
    keep(&mut path);
    for group in groups {
        in_tokens(group, paths);
    }
}

/// Whether something is compiled for tests alone.
pub(super) fn of_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => {
            let text = list.tokens.to_string();
            let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).collect();
            words.contains(&"test") && !words.contains(&"not") && !words.contains(&"any")
        }
        _ => attribute.path().is_ident("test"),
    })
}

/// The attributes of an item.
pub(super) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// The name that an item gives to what it declares.
fn name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}
