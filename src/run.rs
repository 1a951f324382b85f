//! What the operator does of its own: its watches, its reconciles and its word to OLM. The manager does the rest.
use std::{sync::Arc, time::Duration};

use kube_manager::{
    Manager,
    access::{Need, Requirement, Where},
    log::Level,
    manager,
};

use crate::{
    controller::{
        Caches, Context, Queue,
        contests::Contests,
        reconcile,
        slots::{DOUBT, Slots},
        upgradeable::{self, Rollouts},
        watches,
    },
    options::Options,
    permissions::{self, Scope},
    settings::Settings,
};

/// Name of the controller in metrics.
const CONTROLLER: &str = "memcached";

/// Name of the operator.
const NAME: &str = "memcached-operator";

/// Runs the operator until it is to stop.
///
/// # Errors
/// When it cannot start, or the lease is lost.
pub async fn run(options: Options, settings: Settings, level: Level) -> Result<(), manager::Error> {
    let mut manager = Manager::builder(NAME)
        .options(options.manager.clone())
        .log_level(level)
        .requires(requirements(&options))
        .start()
        .await?;
    let queue: Arc<Queue> = manager.queue(CONTROLLER);
    let caches = Caches::default();
    watches::start(&mut manager, &caches, &queue);
    let rollouts = Rollouts::default();
    let context = Arc::new(Context {
        client: manager.client(),
        settings,
        caches,
        queue: Arc::clone(&queue),
        readiness: manager.readiness().clone(),
        contests: Contests::default(),
        slots: Slots::new(usize::from(options.max_rolling)),
        events: manager.events(),
        rollouts: rollouts.clone(),
    });
    manager.while_leading(roll_out(Arc::clone(&context)));
    if let Some(name) = options.operator_condition_name.filter(|name| !name.is_empty()) {
        let (client, namespace) = (manager.client(), manager.namespace().to_owned());
        manager.while_leading(async move { upgradeable::report(client, &namespace, &name, &rollouts).await });
    }
    manager.work(CONTROLLER, queue, move |key| reconcile(Arc::clone(&context), key));
    manager.run().await
}

/// Goes on with the rollouts that an earlier leader began, and lets others begin when every Memcached has been reconciled once.
async fn roll_out(context: Arc<Context>) {
    context.resume();
    while !context.queue.caught_up() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    for key in context.slots.open() {
        context.queue.add(key);
    }
    loop {
        tokio::time::sleep(DOUBT / 4).await;
        context.end_doubts();
    }
}

/// The permissions of the table that the operator needs with these options.
fn requirements(options: &Options) -> Vec<Requirement> {
    let reviews = options.manager.metrics_secure && options.manager.metrics_bind_address.is_some();
    let used = permissions::grants().into_iter().filter(|grant| match grant.scope {
        Scope::Own => options.manager.leader_elect,
        Scope::Cluster => reviews,
        Scope::Watched => true,
    });
    let each = |grant: permissions::Grant| {
        let lease = options
            .manager
            .leader_election_id
            .as_deref()
            .unwrap_or(permissions::LEASE);
        let need = Need {
            group: grant.group.to_string(),
            resource: grant.resource.to_string(),
            subresource: grant.subresource.unwrap_or_default().to_owned(),
            // The only grant with a name is that of the Lease.
            name: grant.names.first().map_or(String::new(), |_| lease.to_owned()),
            ..Need::default()
        };
        let scope = match grant.scope {
            Scope::Own => Where::Own,
            Scope::Watched => Where::Watched,
            Scope::Cluster => Where::Cluster,
        };
        grant.verbs.iter().map(move |verb| Requirement {
            need: Need {
                verb: verb.as_str().to_owned(),
                ..need.clone()
            },
            scope,
            why: grant.why.to_owned(),
        })
    };
    used.flat_map(each).collect()
}
