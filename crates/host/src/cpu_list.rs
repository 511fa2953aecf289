//! Lists of CPUs, as the kernel writes them.

/// Reads `0-3,8` into its members; what is not a list gives as much as could be read. At most 4096 CPUs.
pub(crate) fn parse_cpu_list(text: &str) -> Vec<u32> {
    const MOST: u32 = 4096;
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.trim().parse::<u32>(), last.trim().parse::<u32>()) {
            cpus.extend(first..=last.min(MOST));
        }
    }
    cpus
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_read_and_garbage_is_survived() {
        assert_eq!(parse_cpu_list("0-2,8"), [0, 1, 2, 8]);
        assert_eq!(parse_cpu_list(""), [0u32; 0]);
        assert_eq!(parse_cpu_list("3-1,x,-,5"), [5]);
        assert_eq!(parse_cpu_list("0-99999999999,0-4294967295").len(), 4097);
    }
}
