//! `kittiwake report`: how the data of a crawl came about, for a methods section.

use crate::cli::ReportArguments;
use crate::failure::Failure;
use crate::{console, environment, methods};
use kittiwake_store::OpenMode;
use std::process::ExitCode;

pub(crate) async fn run(arguments: &ReportArguments) -> Result<ExitCode, Failure> {
    let store = environment::with_password(&arguments.file).open(OpenMode::Read)?;
    let summary = store.summary().await?;
    let record = store.methods().await?;
    let name = arguments.file.to_string();
    let text = methods::markdown(&name, &summary, &record);
    console::output(text.trim_end());
    Ok(ExitCode::SUCCESS)
}
