mod build;
mod every_kind;
mod hostile;
