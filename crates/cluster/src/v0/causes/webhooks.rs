//! Failures of admission webhooks.

/// The command that finds a webhook's configuration by the webhook's name.
pub const FIND_WEBHOOKS: &str = "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o custom-columns=KIND:.kind,NAME:.metadata.name,WEBHOOKS:.webhooks[*].name";

/// Returns true if the API server's message reports that a webhook did not answer.
pub fn is_of_webhook(message: &str) -> bool {
    message.contains("failed calling webhook")
}
