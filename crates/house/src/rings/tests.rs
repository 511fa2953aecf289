//! Small crates as text, and the arrows and rings that are found in them.

use super::*;

/// The arrows of a crate given as `(file, text)`, as `a.rs -> b.rs: names`.
fn seen(files: &[(&str, &str)]) -> Vec<String> {
    let sources = files.iter().map(|(path, text)| (PathBuf::from(path), (*text).to_owned())).collect();
    let found = arrows(&sources, Path::new("lib.rs")).unwrap();
    let names = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(" ");
    found.iter().map(|((a, b), n)| format!("{} -> {}: {}", a.display(), b.display(), names(n))).collect()
}

/// The arrows from `a.rs`, next to a `b.rs` that defines this and that.
fn from_a(a: &str) -> Vec<String> {
    let b = "pub struct This; pub enum That { One, Two } pub fn f() {} pub const N: u8 = 1; pub mod inner { pub struct In; }";
    seen(&[("lib.rs", "mod a; mod b; pub use b::This;"), ("a.rs", a), ("b.rs", b)])
}

fn none() -> [&'static str; 0] {
    []
}

#[test]
fn a_ring_that_comes_back_is_found() {
    let files = [("lib.rs", "mod a; mod b; mod c; mod d;"), ("a.rs", "use crate::b::B; pub struct A;")];
    let rest = [
        ("b.rs", "pub struct B(crate::c::C);"),
        ("c.rs", "pub struct C; fn f() { super::a::A; }"),
        ("d.rs", "use crate::a::A;"),
    ];
    let sources: Sources = files.iter().chain(&rest).map(|(p, t)| (PathBuf::from(p), (*t).to_owned())).collect();
    let found = rings(&arrows(&sources, Path::new("lib.rs")).unwrap());
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].files, ["a.rs", "b.rs", "c.rs"].map(PathBuf::from));
    let text = found[0].to_string();
    assert!(text.contains("  a.rs -> b.rs: B\n  b.rs -> c.rs: C\n  c.rs -> a.rs: A\n"), "{text}");

    let mended = [("lib.rs", "mod a; mod b;"), ("a.rs", "use crate::b::B;"), ("b.rs", "pub struct B;")];
    let sources: Sources = mended.iter().map(|(p, t)| (PathBuf::from(p), (*t).to_owned())).collect();
    assert_eq!(rings(&arrows(&sources, Path::new("lib.rs")).unwrap()), []);
}

#[test]
fn two_rings_are_two() {
    let files = ["a", "b", "c", "d"].map(PathBuf::from);
    let [a, b, c, d] = &files;
    let ends = [(a, b), (b, a), (b, c), (c, d), (d, c)];
    let arrows = ends.iter().map(|(x, y)| (((*x).clone(), (*y).clone()), BTreeSet::new())).collect();
    let sizes: Vec<_> = rings(&arrows).iter().map(|ring| (ring.files.len(), ring.arrows.len())).collect();
    assert_eq!(sizes, [(2, 2), (2, 2)], "the arrow from one to the other is of none");
}

#[test]
fn imports_of_every_form_are_arrows() {
    for import in [
        "use crate::b::This;",
        "use super::b::This;",
        "use super::b::{self, This};",
        "use crate::{b::{This as Other}};",
        "use crate::This;",
        "use super::*; fn f(_: This) {}",
        "use crate::b::*; fn f(_: This) {}",
        "use super::b; fn f(_: b::This) {}",
        "use super::b as other; fn f(_: other::This) {}",
        "use super::b::{self}; fn f(_: b::This) {}",
        "use super::b::{self as other}; fn f(_: other::This) {}",
        "fn f() { use crate::b::This; }",
        "fn f() { use super::b; b::This; }",
        "mod own { use super::super::b::This; }",
        "mod own { pub(super) use crate::b::This; } fn f(_: own::This) {}",
    ] {
        assert_eq!(from_a(import), ["a.rs -> b.rs: This"], "{import}");
    }
}

#[test]
fn paths_in_code_are_arrows() {
    for (code, name) in [
        ("fn f() -> crate::b::This { todo!() }", "This"),
        ("fn f() { super::b::f(); }", "f"),
        ("fn f(x: u8) -> bool { matches!(x, crate::b::N) }", "N"),
        ("fn f() { println!(\"{}\", 1..super::b::N); }", "N"),
        ("fn f() { let _ = vec![crate::b::That::One]; }", "That"),
        ("use super::b; impl From<b::That> for u8 { fn from(_: b::That) -> u8 { 0 } }", "That"),
        ("struct S { #[serde(with = \"crate::b\")] x: u8 }", "b"),
        ("struct S { #[serde(default = \"crate::b::f\")] x: u8 }", "f"),
        ("macro_rules! m { () => { $crate::b::f() } }", "f"),
        ("macro_rules! m { () => { use crate::b::{inner, This}; } }", "This"),
        ("fn f() { <crate::b::This as Clone>::clone(); }", "This"),
        ("type T = crate::b::inner::In;", "In"),
        ("use super::b::That::*; fn f() { One; }", "That"),
        ("#[cfg(not(test))] use crate::b::N;", "N"),
        ("#[cfg(any(test, unix))] use crate::b::N;", "N"),
        ("struct S { #[serde(with = \"crate::b::some_name\")] x: u8 }", "some_name"),
        ("fn f() { S { x: crate::b::N }; }", "N"),
        ("pub use crate::b::N; fn f() { println!(\"{}\", N); }", "N"),
        ("use super::b; fn f(b: u8) { println!(\"{}\", b::N); }", "N"),
        ("pub use crate::b::f; fn g(f: u8) { println!(\"{}\", f(1)); }", "f"),
        ("fn f() { m!(S { x: &crate::b::N }); }", "N"),
        ("pub use crate::b::N; fn f(x: u8) { match x { N => (), _ => () } }", "N"),
    ] {
        assert_eq!(from_a(code), [format!("a.rs -> b.rs: {name}")], "{code}");
    }
}

#[test]
fn what_is_not_used_is_not_an_arrow() {
    for code in [
        "pub use crate::b::This;",
        "pub(crate) use crate::b::*;",
        "use super::b;",
        "//! [`crate::b::This`]",
        "/// [`crate::b::This`]\nfn f() {}",
        "pub use crate::b::f; fn g() { let f = 1; f; }",
        "pub use crate::b::f; fn g(f: u8) { println!(\"{}\", f); }",
        "fn g(x: X) { x.f(); x.b.This; }",
        "#[cfg(test)] use crate::b::This;",
        "#[cfg(all(test, unix))] fn f(_: crate::b::This) {}",
        "#[test] fn f() { crate::b::f(); }",
        "mod own { #[cfg(test)] mod tests { use crate::b::This; } }",
        "struct S { #[cfg(test)] x: crate::b::This }",
        "#[cfg(any(test, all(test, unix)))] use crate::b::This;",
        "struct S; impl S { #[cfg(test)] fn f(_: crate::b::This) {} }",
        "struct S; impl S { #[cfg(test)] const X: crate::b::This = 1; }",
        "trait T { #[cfg(test)] fn f(_: crate::b::This); }",
        "enum E { #[cfg(test)] A(crate::b::This) }",
        "fn f() { S { #[cfg(test)] x: crate::b::N }; }",
        "pub use crate::b::N; #[cfg(N)] fn f() {}",
        "pub use crate::b::f; fn g(f: u8) { println!(\"{} {}\", f, f); }",
        "pub use crate::b::f; fn g(x: X) { println!(\"{}\", x.f); }",
        "pub use crate::b::f; fn g() { m!(S { f: 1 }); }",
        "use super::b::That::*; fn f() { Three; }",
        "struct S { #[serde(rename = \"crate::b::no name\")] x: u8 }",
        "use ::b::This;",
        "use std::f; fn g() { f(); }",
        "pub(in crate::b) struct X;",
        "fn f() { \"crate::b::This\"; }",
        "struct This; fn f(_: This) {}",
        "mod b { pub struct This; } use b::This;",
        "use b::This; mod b { pub struct This; }",
    ] {
        assert_eq!(from_a(code), none(), "{code}");
    }
}

#[test]
fn items_of_every_kind_use_names_unless_they_are_for_tests() {
    for item in [
        "const X: crate::b::This = 1;",
        "static X: crate::b::This = 1;",
        "enum E { A(crate::b::This) }",
        "extern \"C\" { fn g(_: crate::b::This); }",
        "impl crate::b::This {}",
        "impl S { fn f(_: crate::b::This) {} }",
        "impl S { const X: crate::b::This = 1; }",
        "made!(crate::b::This);",
        "mod own { use crate::b::This; }",
        "struct S(crate::b::This);",
        "trait T { fn f(_: crate::b::This); }",
        "trait T = From<crate::b::This>;",
        "type T = crate::b::This;",
        "union U { x: crate::b::This }",
    ] {
        assert_eq!(from_a(item), ["a.rs -> b.rs: This"], "{item}");
        assert_eq!(from_a(&format!("#[cfg(test)] {item}")), none(), "{item}");
    }
    // A crate that only tests know hides nothing.
    let hidden = "#[cfg(test)] extern crate other as This; use crate::b::*; fn g(_: This) {}";
    assert_eq!(from_a(hidden), ["a.rs -> b.rs: This"]);
}

#[test]
fn items_of_every_kind_hide_those_of_a_glob() {
    for item in [
        "const This: u8 = 1;",
        "static This: u8 = 1;",
        "fn This() {}",
        "struct This;",
        "union This { x: u8 }",
        "type This = u8;",
        "trait This {}",
        "trait This = Clone;",
        "enum This {}",
        "extern crate other as This;",
    ] {
        assert_eq!(from_a(&format!("use crate::b::*; {item} fn g() {{ This; }}")), none(), "{item}");
    }
}

#[test]
fn a_call_is_not_a_variable_of_that_name() {
    assert_eq!(from_a("pub use crate::b::f; fn g() { let f = f(); }"), ["a.rs -> b.rs: f"]);
}

#[test]
fn re_exports_are_followed_to_the_definition() {
    let files = [
        ("lib.rs", "mod a; mod b; mod user;"),
        ("a/mod.rs", "mod deep; pub use self::deep::Deep as Shallow;"),
        ("a/deep.rs", "pub struct Deep;"),
        ("b.rs", "pub use crate::a::*;"),
        ("user.rs", "use crate::b::Shallow;"),
    ];
    assert_eq!(seen(&files), ["user.rs -> a/deep.rs: Deep"]);
}

#[test]
fn a_child_and_its_parent_make_a_ring() {
    let files = [
        ("lib.rs", "mod a;"),
        ("a.rs", "mod child; pub use child::Child; pub struct Thing; fn f(_: Child) {}"),
        ("a/child.rs", "pub struct Child(super::Thing);"),
    ];
    assert_eq!(seen(&files), ["a/child.rs -> a.rs: Thing", "a.rs -> a/child.rs: Child"]);
}

#[test]
fn a_private_import_of_the_parent_is_followed() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "mod child; use crate::b::This; fn f(_: This) {}"),
        ("a/child.rs", "use super::*; fn f(_: This) {}"),
        ("b.rs", "pub struct This;"),
    ];
    assert_eq!(seen(&files), ["a/child.rs -> b.rs: This", "a.rs -> b.rs: This"]);
}

#[test]
fn a_glob_brings_only_what_is_visible() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "use crate::b::*; use crate::c::*; fn f(_: Thing) {}"),
        ("b.rs", "struct Thing; pub struct Other;"),
        ("c.rs", "pub struct Thing;"),
    ];
    assert_eq!(seen(&files), ["a.rs -> c.rs: Thing"]);
}

#[test]
fn a_glob_brings_what_a_restriction_allows() {
    for (visibility, file) in [("pub(crate)", "b/deep.rs"), ("pub(super)", "c.rs"), ("pub(self)", "c.rs")] {
        let deep = format!("{visibility} struct Thing;");
        let files = [
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::b::deep::*; use crate::c::*; fn f(_: Thing) {}"),
            ("b.rs", "pub mod deep;"),
            ("b/deep.rs", deep.as_str()),
            ("c.rs", "pub struct Thing;"),
        ];
        assert_eq!(seen(&files), [format!("a.rs -> {file}: Thing")], "{visibility}");
    }
}

#[test]
fn a_variable_of_a_macros_name_is_not_the_macro() {
    let files = [
        ("lib.rs", "#[macro_use] mod m; mod a;"),
        ("m.rs", "macro_rules! made { () => {} }"),
        ("a.rs", "fn f() { made; }"),
    ];
    assert_eq!(seen(&files), none());
}

#[test]
fn what_a_macro_makes_stands_in_its_file() {
    let files = [
        ("lib.rs", "#[macro_use] mod m; mod a; mod b;"),
        ("m.rs", "macro_rules! made { ($n:ident) => { pub struct $n; } }"),
        ("a.rs", "use crate::b::Made;"),
        ("b.rs", "made!(Made);"),
    ];
    assert_eq!(seen(&files), ["a.rs -> b.rs: Made", "b.rs -> m.rs: made"]);
}

#[test]
fn another_crate_of_a_modules_name_is_not_the_module() {
    let files = [
        ("lib.rs", "mod a; mod out; "),
        ("a.rs", "use flow::Key; pub use flow::*; mod within { use flow::Key; }"),
        ("out.rs", "mod flow; use super::a::Gone;"),
        ("out/flow.rs", "pub struct Key;"),
    ];
    assert_eq!(seen(&files), none());
}

#[test]
fn a_file_that_is_missing_or_not_rust_is_an_error() {
    let of = |text: &str| arrows(&[(PathBuf::from("lib.rs"), text.to_owned())].into(), Path::new("lib.rs"));
    assert!(of("mod gone;").unwrap_err().contains("gone/mod.rs"));
    assert!(of("fn {").unwrap_err().starts_with("lib.rs: "));
}

#[test]
fn a_module_may_name_its_file() {
    let files = [("lib.rs", "#[path = \"other/x.rs\"] mod a; use a::A;"), ("other/x.rs", "pub struct A;")];
    assert_eq!(seen(&files), ["lib.rs -> other/x.rs: A"]);
    let files = [("lib.rs", "/// Text.\nmod a; use a::A;"), ("a.rs", "pub struct A;")];
    assert_eq!(seen(&files), ["lib.rs -> a.rs: A"]);
}
