//! The rules that the API server itself holds a resource to, in CEL. They check form and what the resource can
//! contradict by itself; upper bounds are never checked, since what the catalog doesn't know, the cluster decides.

use kube::core::{Message, Rule};

use crate::features::FeatureName;
use crate::features::catalog::Catalog;

/// What a release or a named metadata version looks like: `4.4`, `4.4.0`, `4.4-IV2`.
const RELEASE: &str = r"^[0-9]+\\.[0-9]+(\\.[0-9]+|-IV[0-9]+)?$";
/// What a feature's name looks like.
const FEATURE: &str = r"^[A-Za-z0-9._-]+$";
/// What an address looks like: `kafka-0.kafka:9092`, `[fd00::1]:9092`.
const ADDRESS: &str = r"^[^\\s:/]+:[0-9]+$|^\\[[0-9A-Fa-f:.]+\\]:[0-9]+$";

/// What a length of time looks like: `30s`, `1h30m`.
const SOAK: &str = "^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?$";

/// A rule whose message is an expression, so that it can name the value.
fn rule(rule: impl Into<String>, message: impl Into<String>) -> Rule {
    Rule::new(rule.into()).message(Message::Expression(message.into()))
}

/// A rule whose message needs no value: the API server names the field and shows what it holds.
fn plain(rule: impl Into<String>, message: &str) -> Rule {
    Rule::new(rule.into()).message(Message::Message(message.to_owned()))
}

/// On `spec`: one way only to say the target, and a cluster's id that stays. The latter stands here and not on the
/// field, where removing the field would escape it.
pub(super) fn spec() -> Vec<Rule> {
    vec![
        rule(
            "!has(self.releaseVersion) || !has(self.features) || self.features.size() == 0",
            r#"'releaseVersion "' + self.releaseVersion + '" owns every feature, so features must be left out: give one of the two'"#,
        ),
        rule(
            "!has(oldSelf.clusterId) || (has(self.clusterId) && self.clusterId == oldSelf.clusterId)",
            r#"'clusterId "' + oldSelf.clusterId + '" can be neither changed nor removed: declare another cluster in a resource of its own'"#,
        ),
    ]
}

/// On `spec.soak`.
pub(super) fn soak() -> Vec<Rule> {
    vec![rule(
        format!("self.matches('{SOAK}')"),
        r#"'"' + self + '" is no length of time: give one such as 30s, 10m or 1h30m'"#,
    )]
}

/// On `spec.format`: the controllers that the kind of quorum needs.
pub(super) fn format() -> Vec<Rule> {
    let named = "(has(self.initialControllers) ? self.initialControllers.size() : 0)";
    let rule = |of: &str, needs: &str, message: &str| {
        plain(format!("self.quorum != '{of}' || {named} {needs}"), message)
    };
    vec![
        rule(
            "Static",
            "== 0",
            "quorum Static takes its voters from controller.quorum.voters of the configuration: leave initialControllers \
             out, or choose InitialControllers",
        ),
        rule(
            "Standalone",
            "== 1",
            "quorum Standalone begins with one controller: give exactly one in initialControllers",
        ),
        rule(
            "InitialControllers",
            "> 0",
            "quorum InitialControllers needs the controllers to begin with: give initialControllers",
        ),
    ]
}

/// On the whole resource: how a cluster began can't be changed afterwards. Stands here, where status can be seen and
/// leaving `format` out does not escape it.
pub(super) fn whole() -> Vec<Rule> {
    let controllers = |of: &str| {
        format!("(has({of}.spec.format.initialControllers) ? {of}.spec.format.initialControllers : [])")
    };
    let same = format!(
        "has(self.spec.format) && self.spec.format.quorum == oldSelf.spec.format.quorum && {} == {}",
        controllers("self"),
        controllers("oldSelf")
    );
    vec![
        Rule::new(format!(
            "!has(oldSelf.status) || !has(oldSelf.status.bootstrapped) || !oldSelf.status.bootstrapped || \
             !has(oldSelf.spec.format) || ({same})"
        ))
        .message(Message::Message(
            "format.quorum and format.initialControllers say how the cluster began, and it has begun: they can be neither \
             changed nor removed"
                .to_owned(),
        )),
    ]
}

/// On `spec.format.kafkaVersion`.
pub(super) fn kafka_version() -> Vec<Rule> {
    vec![rule(
        r"self.matches('^[0-9]+\\.[0-9]+(\\.[0-9]+)?([-+].*)?$')",
        r#"'"' + self + '" is no version of Kafka: give one such as "4.4.0"'"#,
    )]
}

/// On the name of a variable.
pub(super) fn variable() -> Vec<Rule> {
    vec![rule(
        "self.matches('^[A-Za-z_][A-Za-z0-9_]*$')",
        r#"'"' + self + '" is no name of a variable: give one such as CLUSTER_ID'"#,
    )]
}

/// On a node's id.
pub(super) fn node_id() -> Vec<Rule> {
    vec![plain("self >= 0", "a node id is from 0 up")]
}

/// On a port.
pub(super) fn port() -> Vec<Rule> {
    vec![plain("self >= 1 && self <= 65535", "a port is from 1 to 65535")]
}

/// On a host.
pub(super) fn host() -> Vec<Rule> {
    vec![rule(
        r"self.matches('^[A-Za-z0-9._:-]+$')",
        r#"'"' + self + '" is no host: give a name or an address, without a port'"#,
    )]
}

/// On `spec.cluster`: an address at least.
pub(super) fn cluster() -> Vec<Rule> {
    vec![
        Rule::new(
            "(has(self.bootstrapServers) && self.bootstrapServers.size() > 0) || \
         (has(self.bootstrapControllers) && self.bootstrapControllers.size() > 0)",
        )
        .message("give an address at least: in bootstrapServers, bootstrapControllers, or both"),
    ]
}

/// On an address.
pub(super) fn address() -> Vec<Rule> {
    vec![rule(format!("self.matches('{ADDRESS}')"), r#"'"' + self + '" is no address: give host:port'"#)]
}

/// On `spec.releaseVersion`.
pub(super) fn release() -> Vec<Rule> {
    vec![rule(
        format!("self.matches('{RELEASE}')"),
        r#"'"' + self + '" is no release: give one such as "4.4", or a metadata version such as "4.4-IV2"'"#,
    )]
}

/// On a feature's name.
pub(super) fn name() -> Vec<Rule> {
    vec![rule(
        format!("self.matches('{FEATURE}')"),
        r#"'"' + self + '" is no feature: names are letters, digits, dots, dashes and underscores'"#,
    )]
}

/// On `spec.features`: names, levels, and the dependencies between levels that are both declared.
///
/// The API server refuses rules that could cost too much, and for all it knows each key and each level could be a
/// text of megabytes: so messages name the first offender only, and only one level is ever matched.
pub(super) fn levels() -> Vec<Rule> {
    let metadata = FeatureName::METADATA_VERSION;
    let lowest = Catalog::kafka().metadata_versions().iter().map(|v| v.level).min().unwrap_or_default();
    let mut rules = Vec::new();
    let mut refuse = |offence: &str, message: &str| {
        rules.push(rule(
            format!("!self.exists(f, {offence})"),
            format!("self.filter(f, {offence})[0] + '{message}'"),
        ));
    };
    refuse(
        &format!("!f.matches('{FEATURE}')"),
        " is no feature: names are letters, digits, dots, dashes and underscores",
    );
    refuse(
        &format!("f != '{metadata}' && type(self[f]) != int"),
        &format!(": only {metadata} has levels by name, give a number"),
    );
    refuse("type(self[f]) == int && self[f] < 0", ": a level is at least 0");
    let own = |of_type: &str| format!("'{metadata}' in self && type(self['{metadata}']) == {of_type}");
    rules.push(rule(
        format!("!({} && self['{metadata}'] >= 0 && self['{metadata}'] < {lowest})", own("int")),
        format!("'{metadata} ' + string(self['{metadata}']) + ': the lowest level is {lowest}'"),
    ));
    rules.push(rule(
        format!("!({} && !self['{metadata}'].matches('{RELEASE}'))", own("string")),
        format!(
            "'{metadata} \"' + self['{metadata}'] + '\" is no metadata version: give one such as \"4.4-IV2\", or a number'"
        ),
    ));
    rules.extend(dependencies(Catalog::kafka()));
    rules
}

/// A rule for each dependency that the catalog knows.
fn dependencies(catalog: &Catalog) -> Vec<Rule> {
    let number = |name: &FeatureName| format!("'{name}' in self && type(self['{name}']) == int");
    let mut rules = Vec::new();
    for feature in catalog.features() {
        let name = &feature.name;
        for (level, (other, least)) in
            feature.levels.iter().flat_map(|l| l.needs.iter().map(|n| (l.level, n)))
        {
            let least_text = catalog.level_text(other, *least);
            rules.push(rule(
                format!(
                    "!({} && {} && self['{name}'] == {level} && self['{other}'] < {least})",
                    number(name),
                    number(other)
                ),
                format!(
                    "'{name} {level} needs {other} {least_text} or higher, but ' + string(self['{other}']) + \
                     ' is declared'"
                ),
            ));
        }
    }
    rules
}
