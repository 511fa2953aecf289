//! Why there is no picture.

/// A picture that could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw the picture: {0}")]
pub struct SvgError(pub(super) String);
