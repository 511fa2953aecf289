//! Where a run's words go: the command decides.

use std::{io, sync::Arc};

use crate::live_view::LiveView;

/// Tells the user one line, from any thread.
pub type Note = Arc<dyn Fn(&str) + Send + Sync>;

/// Draws the live view. An error means that the terminal is gone: the run then ends.
pub type Draw = Box<dyn FnMut(LiveView) -> io::Result<()>>;

/// Where a run's words go.
pub struct Output {
    /// Notes while it runs.
    pub note: Note,
    /// The live view, once a second; `None` when nobody watches.
    pub draw: Option<Draw>,
    /// The final report, once.
    pub report: Box<dyn FnMut(&str)>,
}
