//! `kittiwake serve`: a crawl in the browser, and for programs.

use crate::cli::{ServeArguments, VaultArguments};
use crate::commands::crawl::stop_asked;
use crate::environment;
use crate::failure::Failure;
use crate::serving::{self, Program, Secrets};
use std::process::ExitCode;
use std::sync::Arc;
use tokio::sync::watch;

pub(crate) async fn run(
    arguments: &ServeArguments,
    vault: &VaultArguments,
) -> Result<ExitCode, Failure> {
    let place = environment::with_password(&arguments.file);
    let ledger = environment::ledger_place(arguments.budgets.as_ref())?;
    let secrets = Secrets::open(vault)?;
    let program = Arc::new(Program::new(secrets, &place, ledger.clone(), None)?);
    let (ask_to_stop, stop) = watch::channel(false);
    tokio::spawn(async move {
        stop_asked().await;
        let _ = ask_to_stop.send(true);
    });
    let how = arguments.how.at(arguments.listen);
    serving::serve(&place, ledger, &how, program, stop).await?;
    Ok(ExitCode::SUCCESS)
}
