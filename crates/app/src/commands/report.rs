//! `kittiwake report`: how the data of a crawl came about, for a methods section.

use crate::cli::ReportArguments;
use crate::failure::Failure;
use crate::{console, methods};
use kittiwake_store::Store;
use kittiwake_store::sqlite::{OpenMode, SqliteStore};
use std::process::ExitCode;

pub(crate) async fn run(arguments: &ReportArguments) -> Result<ExitCode, Failure> {
    let store = SqliteStore::open(&arguments.file, OpenMode::Read)?;
    let summary = store.summary().await?;
    let record = store.methods().await?;
    let name = arguments.file.display().to_string();
    let text = methods::markdown(&name, &summary, &record);
    console::output(text.trim_end());
    Ok(ExitCode::SUCCESS)
}
