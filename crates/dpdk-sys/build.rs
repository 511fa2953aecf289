//! Finds DPDK through pkg-config, compiles the shim, and binds the shim's header.

use std::{env, path::PathBuf, process::exit};

/// One line, naming what to install; a panic would bury it.
fn fail(what: &str) -> ! {
    eprintln!("dpdk-sys: {what}; mend it with: apt-get install libdpdk-dev libclang-dev");
    exit(1)
}

/// What `pkg-config ARGS libdpdk` says, word by word.
fn pkg_config(args: &[&str]) -> Vec<String> {
    match std::process::Command::new("pkg-config").args(args).arg("libdpdk").output() {
        Ok(out) if out.status.success() => {
            String::from_utf8_lossy(&out.stdout).split_whitespace().map(str::to_owned).collect()
        }
        Ok(out) => {
            let said = String::from_utf8_lossy(&out.stderr);
            let said = said.lines().next().unwrap_or_default();
            fail(&format!("pkg-config {} libdpdk: {said} (LINERATE_DPDK=shared needs no --static)", args.join(" ")))
        }
        Err(e) => fail(&format!("cannot run pkg-config: {e}")),
    }
}

/// Drivers that a static program is without: those of system-on-chip network cards, of accelerators, and what only they
/// use. All others for a port (`net`), and what finds and feeds them, are in it.
const LEFT_OUT: [&str; 11] =
    ["cnxk", "octeontx", "cpt", "dpaa", "fslmc", "enetc", "enetfec", "pfe", "ipn3ke", "ifpga", "qat"];

/// A copy of the memif driver whose calls that wait without end are ours (`lr_memif_*` in shim/host.c): the driver makes them on
/// DPDK's one interrupt thread, and two processes that wait for each other there never end. Returns the name to link.
fn with_our_calls(lib: &str, dpdk: &pkg_config::Library) -> String {
    let file = format!("lib{lib}.a");
    let Some(original) = dpdk.link_paths.iter().map(|path| path.join(&file)).find(|path| path.exists()) else {
        return lib.to_owned();
    };
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_else(|| fail("OUT_DIR is not set")));
    let name = format!("{lib}_linerate");
    let renamed = ["connect", "recvmsg"].map(|call| format!("--redefine-sym={call}=lr_memif_{call}"));
    let copied = std::process::Command::new("objcopy")
        .args(renamed)
        .arg(&original)
        .arg(out.join(format!("lib{name}.a")))
        .status();
    match copied {
        Ok(status) if status.success() => {
            println!("cargo:rustc-link-search=native={}", out.display());
            name
        }
        _ => fail("objcopy (Debian package binutils) cannot copy the memif driver"),
    }
}

/// Statically where there are archives, for speed: thread-local variables, which DPDK reads for every mbuf given back, then
/// take no call (l3: 49 instead of 54 clocks a frame), and a program starts without loading a hundred drivers.
/// `LINERATE_DPDK=shared` links the shared libraries, whose drivers DPDK finds when it starts.
fn link(dpdk: &pkg_config::Library) {
    println!("cargo:rerun-if-env-changed=LINERATE_DPDK");
    for path in &dpdk.link_paths {
        println!("cargo:rustc-link-search=native={}", path.display());
    }
    let is_there = |file: &str| dpdk.link_paths.iter().any(|path| path.join(file).exists());
    let shared = match env::var("LINERATE_DPDK").as_deref() {
        Ok("shared") => true,
        Ok("static") => false,
        Ok(other) => fail(&format!("LINERATE_DPDK={other}: must be static or shared")),
        Err(_) => !is_there("librte_eal.a"),
    };
    if shared {
        // `--as-needed` (rustc's default) drops what is not used; the ring driver and the vdev bus are not in libdpdk.pc
        // but are called by name.
        let own = ["rte_net_ring".to_string(), "rte_bus_vdev".to_string()];
        for lib in dpdk.libs.iter().filter(|l| l.starts_with("rte_")).chain(&own) {
            println!("cargo:rustc-link-lib=dylib={lib}");
        }
        return;
    }
    let mut seen = std::collections::BTreeSet::new();
    for word in pkg_config(&["--static", "--libs"]) {
        if let Some(lib) = word.strip_prefix("-l:lib").and_then(|file| file.strip_suffix(".a")) {
            // Drivers are called something_device, libraries only something.
            let parts: Vec<&str> = lib.split('_').collect();
            let wanted = match parts[..] {
                ["rte", "net" | "bus" | "mempool" | "common", ref device @ ..] => {
                    device.is_empty() || !LEFT_OUT.iter().any(|out| device.concat().starts_with(out))
                }
                ["rte", "raw" | "crypto" | "compress" | "regex" | "vdpa" | "event" | "baseband" | "dma" | "gpu", _, ..] => {
                    false
                }
                _ => true,
            };
            if lib == "rte_net_memif" && seen.insert(lib.to_owned()) {
                println!("cargo:rustc-link-lib=static:-bundle,+whole-archive={}", with_our_calls(lib, dpdk));
            }
            // Whole: drivers are known by their constructors alone.
            if wanted && seen.insert(lib.to_owned()) {
                println!("cargo:rustc-link-lib=static:-bundle,+whole-archive={lib}");
            }
        } else if let Some(lib) = word.strip_prefix("-l").filter(|lib| !lib.starts_with("rte_")) {
            // What libraries of these would need if they, too, were static is not always there; one is the compiler's.
            if (lib == "atomic" || is_there(&format!("lib{lib}.so"))) && seen.insert(lib.to_owned()) {
                println!("cargo:rustc-link-lib=dylib={lib}");
            }
        }
    }
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
    let flags = pkg_config(&["--cflags"]);

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

    link(&dpdk);

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
