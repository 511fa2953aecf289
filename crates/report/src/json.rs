//! The result itself, as `docs/results-schema.md` describes it.

use measure::result::RunResult;

/// The result as indented JSON with a newline at its end.
///
/// # Errors
/// Never for a result that was built from finite figures; the signature says what the serialiser says.
pub fn render(result: &RunResult) -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(result)?;
    text.push('\n');
    Ok(text)
}
