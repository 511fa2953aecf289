//! Finds DPDK through pkg-config, compiles the shim, and binds the shim's header.

use std::{env, path::PathBuf, process::exit};

/// One line, naming what to install; a panic would bury it.
fn fail(what: &str) -> ! {
    eprintln!("linerate-dpdk-sys: {what}; mend it with: apt-get install libdpdk-dev libclang-dev");
    exit(1)
}

fn main() {
    for file in ["shim/shim.h", "shim/shim.c", "shim/host.c"] {
        println!("cargo:rerun-if-changed={file}");
    }
    let dpdk = match pkg_config::Config::new().cargo_metadata(false).atleast_version("22.11").probe("libdpdk") {
        Ok(found) => found,
        Err(pkg_config::Error::ProbeFailure { .. }) => fail("DPDK 22.11 or later was not found by pkg-config"),
        Err(e) => fail(&format!("pkg-config libdpdk: {}", e.to_string().lines().next().unwrap_or_default())),
    };
    // DPDK's own flags (include paths, `-include rte_config.h`, its baseline -march), and none of ours.
    let flags = match std::process::Command::new("pkg-config").args(["--cflags", "libdpdk"]).output() {
        Ok(out) => String::from_utf8_lossy(&out.stdout).into_owned(),
        Err(e) => fail(&format!("cannot run pkg-config: {e}")),
    };
    let flags: Vec<&str> = flags.split_whitespace().collect();

    let mut cc = cc::Build::new();
    for flag in &flags {
        cc.flag(flag);
    }
    cc.files(["shim/shim.c", "shim/host.c"])
        .include("shim")
        .define("ALLOW_EXPERIMENTAL_API", None)
        .opt_level(3)
        .flag("-std=gnu11")
        .warnings(true)
        .flag("-Werror=implicit-function-declaration")
        .flag_if_supported("-Wno-unused-parameter")
        .flag_if_supported("-Wno-deprecated-declarations")
        .compile("linerate_dpdk_shim");

    // Shared: a static link would drop the constructors of the poll-mode drivers. `--as-needed` (rustc's default)
    // drops what is not used; the ring driver and the vdev bus are not in libdpdk.pc but are called by name.
    for path in &dpdk.link_paths {
        println!("cargo:rustc-link-search=native={}", path.display());
    }
    let own = ["rte_net_ring".to_string(), "rte_bus_vdev".to_string()];
    for lib in dpdk.libs.iter().filter(|l| l.starts_with("rte_")).chain(&own) {
        println!("cargo:rustc-link-lib=dylib={lib}");
    }

    let bindings = bindgen::Builder::default()
        .header("shim/shim.h")
        .clang_args(&flags)
        .allowlist_function("lr_.*")
        .allowlist_type("lr_.*")
        .allowlist_var("LR_.*")
        // Only ever behind a pointer: their layout differs between DPDK versions.
        .opaque_type("rte_.*")
        .default_enum_style(bindgen::EnumVariation::Consts)
        .prepend_enum_name(false)
        .layout_tests(true)
        .generate_comments(false)
        .derive_default(true)
        .generate();
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("bindings.rs");
    match bindings {
        Ok(bindings) => bindings.write_to_file(&out).unwrap_or_else(|e| fail(&format!("{}: {e}", out.display()))),
        Err(e) => fail(&format!("bindgen: {e}")),
    }
}
