//! The rules that the API server itself holds a resource to, in CEL. They check form and what the resource can
//! contradict by itself; upper bounds are never checked, since what the catalog doesn't know, the cluster decides.

use kube::core::{Message, Rule};

use crate::features::FeatureName;
use crate::features::catalog::Catalog;

/// What a release or a named metadata version looks like: `4.4`, `4.4.0`, `4.4-IV2`.
const RELEASE: &str = r"^[0-9]+\\.[0-9]+(\\.[0-9]+)?(-IV[0-9]+)?$";
/// What a feature's name looks like.
const FEATURE: &str = r"^[A-Za-z0-9._-]+$";
/// What an address looks like: `kafka-0.kafka:9092`, `[fd00::1]:9092`.
const ADDRESS: &str = r"^[^\\s:/]+:[0-9]+$|^\\[[0-9A-Fa-f:.]+\\]:[0-9]+$";

/// A rule whose message is an expression, so that it can name the value.
fn rule(rule: impl Into<String>, message: impl Into<String>) -> Rule {
    Rule::new(rule.into()).message(Message::Expression(message.into()))
}

/// On `spec`: one way only to say the target.
pub(super) fn spec() -> Vec<Rule> {
    vec![rule(
        "!has(self.releaseVersion) || !has(self.features) || self.features.size() == 0",
        r#"'releaseVersion "' + self.releaseVersion + '" owns every feature, so features must be left out: give one of the two'"#,
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

/// On a list of addresses.
pub(super) fn addresses() -> Vec<Rule> {
    vec![rule(
        format!("self.all(a, a.matches('{ADDRESS}'))"),
        format!(
            "'addresses are host:port, these are not: ' + self.filter(a, !a.matches('{ADDRESS}')).join(', ')"
        ),
    )]
}

/// On `spec.releaseVersion`.
pub(super) fn release() -> Vec<Rule> {
    vec![rule(
        format!("self.matches('{RELEASE}')"),
        r#"'"' + self + '" is no release: give one such as "4.4", or a metadata version such as "4.4-IV2"'"#,
    )]
}

/// On a list of feature names.
pub(super) fn names() -> Vec<Rule> {
    vec![rule(
        format!("self.all(f, f.matches('{FEATURE}'))"),
        format!(
            "'feature names are letters, digits, dots, dashes and underscores, these are not: ' + \
             self.filter(f, !f.matches('{FEATURE}')).join(', ')"
        ),
    )]
}

/// On `spec.features`: names, levels, and the dependencies between levels that are both declared.
pub(super) fn levels() -> Vec<Rule> {
    let metadata = FeatureName::METADATA_VERSION;
    let lowest = Catalog::kafka().metadata_versions().iter().map(|v| v.level).min().unwrap_or_default();
    let named = format!("(type(self[f]) == string && (f != '{metadata}' || !self[f].matches('{RELEASE}')))");
    let low = format!("(type(self[f]) == int && self[f] < (f == '{metadata}' ? {lowest} : 0))");
    let offenders =
        |such: &str| format!("self.filter(f, {such}).map(f, f + ': ' + string(self[f])).join(', ')");
    let mut rules = names();
    rules.push(rule(
        format!("self.all(f, !{named})"),
        format!(
            "'levels are numbers, or for {metadata} a release such as \"4.4-IV2\"; these are neither: ' + {}",
            offenders(&named)
        ),
    ));
    rules.push(rule(
        format!("self.all(f, !{low})"),
        format!("'levels start at 0, {metadata} at {lowest}; these are lower: ' + {}", offenders(&low)),
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
