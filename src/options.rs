//! Flags and environment variables of the operator: those of the manager, and the limit of rollouts.
use clap::{Command, CommandFactory as _, FromArgMatches as _, Parser};
use kube_manager::options::Options as ManagerOptions;

use crate::controller::LEASE;

/// Runs memcached on Kubernetes: manages a Deployment or StatefulSet, a Service and a PodDisruptionBudget for each
/// Memcached object.
///
/// Uses the ServiceAccount inside a cluster, and the current context of the kubeconfig outside.
#[derive(Clone, Debug, Parser)]
#[command(name = "memcached-operator", version)]
pub struct Options {
    /// Those that every operator has.
    #[command(flatten)]
    pub manager: ManagerOptions,

    /// Maximum number of Memcacheds whose servers are replaced at the same time when the operator or its default image
    /// changes.
    #[arg(long, env = "MAX_ROLLING", default_value_t = 10, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..))]
    pub max_rolling: u16,

    /// Add the finalizer to Memcacheds, so that their deletion is reported. Without it, Memcacheds can be deleted after the operator
    /// was uninstalled. Existing finalizers stay.
    #[arg(long, env = "ADD_FINALIZER", default_value_t = true, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub add_finalizer: bool,
}

impl Options {
    /// The options of the command line. Prints help or an error and ends the process if there are none.
    pub fn read() -> Self {
        let matches = command_line().get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }
}

/// The command line. The name of the Lease is in the Role, so it has a default here.
fn command_line() -> Command {
    Options::command().mut_arg("leader_election_id", |argument| argument.default_value(LEASE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Options {
        let matches = command_line().try_get_matches_from([&["memcached-operator"], arguments].concat());
        Options::from_arg_matches(&matches.unwrap()).unwrap()
    }

    #[test]
    fn the_command_line_is_consistent() {
        command_line().debug_assert();
    }

    #[test]
    fn the_help_text() {
        insta::assert_snapshot!(command_line().term_width(120).render_long_help());
    }

    #[test]
    fn the_lease_is_that_of_the_role() {
        assert_eq!(parse(&[]).manager.leader_election_id.as_deref(), Some(LEASE));
        let other = parse(&["--leader-elect", "--leader-election-id=other", "--max-rolling=3"]);
        assert_eq!(other.manager.leader_election_id.as_deref(), Some("other"));
        assert_eq!((other.manager.leader_elect, other.max_rolling), (true, 3));
        assert!(other.add_finalizer && !parse(&["--add-finalizer=false"]).add_finalizer);
    }
}
