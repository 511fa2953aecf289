//! Findings for CI servers, in the form of JUnit.

use std::fmt::Write;

use host::audit::{Finding, Verdict};

use crate::text;

/// One test case a finding, in the class of its group. Bad ones fail; what cannot be read or is not there is skipped.
pub fn junit(findings: &[Finding]) -> String {
    let count = |wanted: &dyn Fn(&Finding) -> bool| findings.iter().filter(|finding| wanted(finding)).count();
    let failed = count(&|finding| finding.verdict == Verdict::Bad);
    let skipped = count(&|finding| is_skipped(finding.verdict));
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"linerate host audit\" tests=\"{}\" failures=\"{failed}\" errors=\"0\" skipped=\"{skipped}\">\n",
        findings.len()
    );
    for finding in findings {
        let place = if finding.place.is_empty() { String::new() } else { format!(" {}", finding.place) };
        let name = escape(&format!("{}{place}", finding.id));
        let _ = write!(out, "  <testcase classname=\"host.{}\" name=\"{name}\"", escape(finding.group.name()));
        let text = match finding.want.is_empty() {
            true => finding.got.clone(),
            false => format!("{}; wanted: {}", finding.got, finding.want),
        };
        let _ = match finding.verdict {
            Verdict::Bad => {
                let mends: Vec<String> = finding.mend.iter().map(host::audit::Mend::text).collect();
                writeln!(
                    out,
                    ">\n    <failure message=\"{}\">{}: {}</failure>\n  </testcase>",
                    escape(&text),
                    escape(&finding.why),
                    escape(&mends.join("; "))
                )
            }
            verdict if is_skipped(verdict) => {
                writeln!(out, ">\n    <skipped message=\"{}\"/>\n  </testcase>", escape(&text))
            }
            verdict => {
                writeln!(out, ">\n    <system-out>{}: {}</system-out>\n  </testcase>", verdict.word(), escape(&text))
            }
        };
    }
    out + "</testsuite>\n"
}

fn is_skipped(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Unknown | Verdict::NotApplicable)
}

/// Text between tags and in attributes, without control characters.
fn escape(text: &str) -> String {
    quick_xml::escape::escape(text::clean(text)).into_owned()
}
