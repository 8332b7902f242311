//! The cases: every combination that the tool can be asked for, and everything that it can be asked wrongly.

use kafka_features_operator::features::catalog::Catalog;
use proptest::test_runner::{RngAlgorithm, TestRng};
use rand::seq::SliceRandom as _;

use crate::case::{CLUSTER, Case, QUORUMS, Quorum, ROLES, Role};

/// The metadata versions by name, stable or not, and the releases, each also as people write them.
fn release_texts() -> Vec<String> {
    let versions = Catalog::kafka().metadata_versions();
    let mut texts: Vec<String> = versions.iter().map(|version| version.name.clone()).collect();
    let mut releases: Vec<String> = versions.iter().map(|version| version.release().to_owned()).collect();
    releases.dedup();
    texts.extend(releases);
    texts.extend(
        ["4.0.0", "4.4.1-SNAPSHOT", "4.4-IV2.9", "3.3-IV2", "3.0", "latest", "", "4", "4.4 ", "4.4-iv2"]
            .map(str::to_owned),
    );
    texts
}

/// Each release in each kind of quorum on each kind of node, and none.
pub fn releases(_version: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    for quorum in QUORUMS {
        for role in ROLES {
            cases.push(Case::format(role, quorum, &[]));
            for release in release_texts() {
                cases.push(Case::format(role, quorum, &["--release-version", &release]));
            }
        }
    }
    cases
}

/// Each level of each feature, a few beyond, and alone or on top of releases.
pub fn levels(_version: &str) -> Vec<Case> {
    let catalog = Catalog::kafka();
    let mut settings: Vec<String> = (-1..=36).map(|level| format!("metadata.version={level}")).collect();
    for feature in catalog.features() {
        let most = feature.levels.iter().map(|entry| entry.level.0).max().unwrap_or(0);
        settings.extend((-1..=most + 1).map(|level| format!("{}={level}", feature.name)));
    }
    let mut cases = Vec::new();
    for setting in &settings {
        for (role, quorum) in [
            (Role::Both, Quorum::Standalone),
            (Role::Controller, Quorum::Static),
            (Role::Broker, Quorum::NoInitialControllers),
        ] {
            cases.push(Case::format(role, quorum, &["--feature", setting]));
        }
        for release in ["3.9", "4.0", "4.2-IV0"] {
            cases.push(Case::format(Role::Both, Quorum::Standalone, &["-r", release, "-f", setting]));
        }
    }
    let pairs = [
        ["eligible.leader.replicas.version=1", "metadata.version=22"],
        ["eligible.leader.replicas.version=1", "metadata.version=23"],
        ["group.version=1", "group.version=0"],
        ["group.version=0", "transaction.version=1"],
        ["kraft.version=1", "metadata.version=7"],
    ];
    cases.extend(
        pairs.map(|[one, other]| Case::format(Role::Both, Quorum::Standalone, &["-f", one, "-f", other])),
    );
    cases
}

/// SCRAM users.
pub fn users() -> Vec<Case> {
    let right = [
        r#"SCRAM-SHA-256=[name=alice,salt="N3E=",iterations=8192,password=alice]"#,
        r#"SCRAM-SHA-512=[name=alice,salt="N3E=",saltedpassword="YCE="]"#,
        r#"SCRAM-SHA-256=[name=b,salt=N3E=,password="quoted"]"#,
        r#"SCRAM-SHA-512=[name="c",salt="N3E=",password=c,saltedpassword="YCE="]"#,
        r#"  SCRAM-SHA-256=[name=a b,salt="N3E=",password= b ]  "#,
        r#"SCRAM-SHA-256=[name=,salt="N3E=",password=x]"#,
        r#"SCRAM-SHA-256=[name=x,salt="N3E=",password=x=y=z]"#,
        "SCRAM-SHA-256=[name=é,salt=N3E=,password=ü]",
        "SCRAM-SHA-256=[name=x,password=y]",
        "SCRAM-SHA-512=[name=x,password=y,iterations=16384]",
        "SCRAM-SHA-512=[name=x,salt=N3E=,password=y,]",
    ];
    let wrong = [
        "",
        "x",
        "SCRAM-SHA-1=[name=a,password=b]",
        "scram-sha-256=[name=a,password=b]",
        "SCRAM-SHA-256=name=a,password=b",
        "SCRAM-SHA-256=[name=a,password=b",
        "SCRAM-SHA-256=[]",
        "SCRAM-SHA-256=[password=b]",
        "SCRAM-SHA-256=[name=a]",
        "SCRAM-SHA-256=[name=a,password=]",
        "SCRAM-SHA-256=[name=a,password=b,iterations=4095]",
        "SCRAM-SHA-256=[name=a,password=b,iterations=16385]",
        "SCRAM-SHA-256=[name=a,password=b,iterations=x]",
        "SCRAM-SHA-256=[name=a,password=b,salt=***]",
        "SCRAM-SHA-256=[name=a,salt=N3E=,saltedpassword=***]",
        "SCRAM-SHA-256=[name=a,saltedpassword=YCE=]",
        "SCRAM-SHA-256=[name=a,zz=1,password=b]",
        "SCRAM-SHA-256=[name=a,password=b,c]",
        "SCRAM-SHA-256=[ name=a, password=b]",
        "SCRAM-SHA-256 =[name=a,password=b]",
        "SCRAM-SHA-256=[name=a,,password=b]",
    ];
    let mut cases: Vec<Case> = right
        .iter()
        .chain(&wrong)
        .map(|user| Case::format(Role::Both, Quorum::Standalone, &[&format!("--add-scram={user}")]))
        .collect();
    cases.push(Case::format(
        Role::Controller,
        Quorum::Static,
        &["-S", right[0], "-S", right[1], "-S", right[0]],
    ));
    cases.push(Case::format(Role::Broker, Quorum::Static, &["-S", right[0]]));
    cases.push(Case::format(Role::Broker, Quorum::Static, &["-S", wrong[1]]));
    for release in ["3.5-IV1", "3.5-IV2", "4.0"] {
        cases.push(Case::format(Role::Both, Quorum::Standalone, &["-r", release, "-S", right[0]]));
    }
    cases
}

fn meta(cluster: &str, node: i32, directory: &str) -> String {
    format!(
        "#\n#Mon Nov 30 00:00:00 UTC 2026\nnode.id={node}\ndirectory.id={directory}\nversion=1\ncluster.id={cluster}\n"
    )
}

const DIRECTORY: &str = "JEXY6aqzQY-32P5TStzaFg";

/// Several directories, in every state that they can be found in.
pub fn directories() -> Vec<Case> {
    let mut cases = Vec::new();
    for quorum in
        [Quorum::Static, Quorum::Standalone, Quorum::InitialControllers, Quorum::NoInitialControllers]
    {
        for role in ROLES {
            if matches!((role, quorum), (Role::Broker, Quorum::Standalone)) {
                continue;
            }
            let with = |line: &str, more: &[&str]| Case::format(role, quorum, more).with(line);
            let several = "log.dirs={DIR}/c,{DIR}/a,{DIR}/b/deep";
            let separate = "log.dirs={DIR}/b,{DIR}/a\nmetadata.log.dir={DIR}/m";
            let shared = "log.dirs={DIR}/b,{DIR}/a\nmetadata.log.dir={DIR}/a";
            for line in [several, separate, shared] {
                cases.push(with(line, &[]));
                cases.push(with(line, &[]).once_formatted(&[]));
                cases.push(with(line, &["-g"]).once_formatted(&[]));
                cases.push(with(line, &["-g"]).once_formatted(&["a"]));
                cases.push(with(line, &[]).once_formatted(&["a"]));
            }
            cases.push(with(separate, &["-g"]).once_formatted(&["m"]));
            cases.push(with(several, &["-g"]).once_formatted(&["c"]));
        }
    }
    let one = |more: &[&str]| Case::format(Role::Both, Quorum::Standalone, more);
    let two = |more: &[&str]| one(more).with("log.dirs={DIR}/a,{DIR}/b");
    cases.extend([
        one(&[]).with("log.dirs={DIR}/data,{DIR}/data"),
        one(&[]).without("log.dirs").with("log.dir={DIR}/single"),
        one(&[]).folder("data"),
        one(&[]).folder("data/lost+found"),
        one(&[]).file("data/foreign", "x"),
        one(&[]).file("data", "a file"),
        two(&[]).file("a", "a file"),
        two(&[]).file("b", "a file"),
        one(&[]).folder("data/meta.properties"),
        two(&[]).folder("a/meta.properties"),
        one(&[]).file("data/meta.properties", ""),
        one(&["-g"]).file("data/meta.properties", ""),
        one(&[]).file("data/meta.properties", "version=7"),
        two(&[]).file("a/meta.properties", "version=1"),
        one(&["-g"]).file("data/meta.properties", "version=0\nbroker.id=1\n"),
        one(&["-g"]).file("data/meta.properties", &format!("version=0\nbroker.id=2\ncluster.id={CLUSTER}\n")),
        one(&["-g"]).file("data/meta.properties", &meta(CLUSTER, 1, DIRECTORY)),
        one(&["-g"]).file("data/meta.properties", &meta(CLUSTER, 2, DIRECTORY)),
        one(&["-g"]).file("data/meta.properties", &meta("other", 1, DIRECTORY)),
        one(&["-g"]).file("data/meta.properties", &meta(CLUSTER, 1, "AAAAAAAAAAAAAAAAAAAAAQ")),
        one(&["-g"]).file("data/meta.properties", &meta(CLUSTER, 1, "nonsense")),
        two(&["-g"])
            .file("a/meta.properties", &meta(CLUSTER, 1, DIRECTORY))
            .file("b/meta.properties", &meta(CLUSTER, 1, DIRECTORY)),
        two(&["-g"]).file("a/meta.properties", &meta(CLUSTER, 1, DIRECTORY)),
        two(&["-g"]).file("b/meta.properties", &meta(CLUSTER, 1, DIRECTORY)),
        two(&["-g"]).file("b/meta.properties", &meta("other", 1, DIRECTORY)),
        one(&[]).file("data/__cluster_metadata-0/00000000000000000000-0000000000.checkpoint", "stale"),
    ]);
    cases
}

/// What is wrong with configuration and arguments.
pub fn wrong() -> Vec<Case> {
    let one = |more: &[&str]| Case::format(Role::Both, Quorum::Standalone, more);
    let none = |role| {
        let mut case = Case::format(role, Quorum::NoInitialControllers, &[]);
        case.arguments.retain(|argument| argument != "--no-initial-controllers");
        case
    };
    let voters = |text: &str| {
        let mut case = Case::format(Role::Controller, Quorum::InitialControllers, &[]);
        *case.arguments.last_mut().unwrap() = text.replace("ID", DIRECTORY);
        case
    };
    let mut cases = vec![
        none(Role::Broker),
        none(Role::Controller),
        none(Role::Both),
        Case::format(Role::Controller, Quorum::Static, &["-s"]),
        Case::format(Role::Controller, Quorum::Static, &["-N"]),
        Case::format(Role::Controller, Quorum::Static, &["-I", "1@localhost:9093:JEXY6aqzQY-32P5TStzaFg"]),
        Case::format(Role::Controller, Quorum::Static, &["-I", "nonsense"]),
        Case::format(Role::Broker, Quorum::Standalone, &[]),
        one(&["-N"]),
        one(&["-I", "1@localhost:9093:JEXY6aqzQY-32P5TStzaFg"]),
        one(&["-f", "metadata.version=30", "-r", "4.4"]),
        one(&["-f", "group.version"]),
        one(&["-f", "group.version=x"]),
        one(&["-f", "group.version=40000"]),
        one(&["-f", "=1"]),
        one(&["-f", "zzz=1"]),
        one(&["-f", "zzz=0"]),
        one(&["-f", "group.coordinator.version=1"]),
        one(&["-f", "test.feature.version=1"]),
        one(&["-f", "group.version=9", "-f", "nonsense"]),
        one(&[]).with("unstable.feature.versions.enable=true"),
        one(&["-r", "4.5-IV0"]).with("unstable.feature.versions.enable=true"),
        one(&["-f", "metadata.version=34"]).with("unstable.feature.versions.enable=true"),
        one(&[]).without("node.id"),
        one(&[]).without("process.roles"),
        one(&[]).without("controller.quorum.bootstrap.servers"),
        one(&[]).without("controller.listener.names"),
        one(&[]).with("controller.quorum.voters=1@localhost:9093"),
        one(&[]).with("controller.quorum.voters=2@localhost:9093"),
        one(&[]).with("listeners=PLAINTEXT://localhost:9092"),
        one(&[]).with("zookeeper.connect=x\ninter.broker.protocol.version=3.0\nunknown.key=1"),
        one(&[]).with("advertised.listeners=PLAINTEXT://host:9092,CONTROLLER://controller:19093"),
        one(&[]).with("listeners=PLAINTEXT://:9092,CONTROLLER://:9093"),
        one(&[]).with(
            "listeners=PLAINTEXT://:9092,SECOND://localhost:9094,FIRST://localhost:9093\ncontroller.listener.names=FIRST,SECOND\n\
             listener.security.protocol.map=PLAINTEXT:PLAINTEXT,FIRST:PLAINTEXT,SECOND:PLAINTEXT",
        ),
        one(&[]).with("listeners=PLAINTEXT://:9092,controller://Host:9093"),
        Case::format(Role::Controller, Quorum::Standalone, &[]).with("listeners=CONTROLLER://0.0.0.0:9093"),
    ];
    for text in [
        "1@localhost:9093:ID",
        "1@elsewhere:1:ID",
        "2@h:1:ID",
        "3@h3:9095:ID,1@h1:9093:ID",
        "1@localhost:0:ID",
        "1@:9093:ID",
        "1@localhost:9093:AAAAAAAAAAAAAAAAAAAAAA",
        " 1@localhost:9093:ID , ",
        "1@[::1]:9093:ID",
        "1@[FE80::1:2]:9093:ID",
        "1@127.0.0.1:9093:ID",
        "+1@localhost:9093:ID",
        "",
        ",",
        "1localhost:9093:ID",
        "1@",
        "1@localhost",
        "1@localhost:9093",
        "1@localhost:9093:",
        "1@localhost:x:ID",
        "1@localhost:65536:ID",
        "1@localhost:-1:ID",
        "-1@localhost:9093:ID",
        "x@localhost:9093:ID",
        "1@[::1:9093:ID",
        "1@[::1]9093:ID",
        "1@localhost:9093:nonsense",
        "1@localhost:9093:ID,1@other:9093:ID",
        "1@localhost:9093:ID:x",
    ] {
        cases.push(voters(text));
    }
    cases
}

/// How arguments can be written.
pub fn syntax() -> Vec<Case> {
    let base = Case::format(Role::Both, Quorum::Standalone, &[]);
    let call = |arguments: &[&str]| Case { arguments: Case::call(arguments).arguments, ..base.clone() };
    let config = "{DIR}/server.properties";
    vec![
        call(&["form", "--conf", config, "--clus", CLUSTER, "--stand"]),
        call(&["f", "-c", config, "-t", CLUSTER, "-s"]),
        call(&["format", &format!("--config={config}"), &format!("--cluster-id={CLUSTER}"), "-s"]),
        call(&[
            "format",
            "-c",
            config,
            "-t",
            CLUSTER,
            "-s",
            "--ig",
            "--rel",
            "4.0",
            "--fe",
            "group.version=0",
        ]),
        call(&["format", "-c", config, "-t", CLUSTER, "-s", "--no"]),
        call(&["format", "-c", config, "-t", CLUSTER, "-s", "-s"]),
        call(&["format", "-c", config, "-t", "other", "-t", CLUSTER, "-s", "-r", "3.9", "-r", "4.0"]),
        call(&[
            "format",
            "-c",
            config,
            "-t",
            CLUSTER,
            "-s",
            "--add",
            r#"SCRAM-SHA-256=[name=a,salt="N3E=",password=b]"#,
        ]),
        call(&["format", "-c", config, "--cluster-id=-rmdB0m4T4--Y4thlNXk4Q", "-s"]),
        call(&["format", "-c", config, "--cluster-id=", "-s"]),
        call(&["format", "-c", config, "--cluster-id=a b=c:d#e!f\\g", "-s"]),
        call(&["format", "-c", config, "--cluster-id=clüster", "-s"]),
        call(&["format", "-c", config, "--cluster-id=clüster", "-s", "-g"]).once_formatted(&[]),
        call(&["format", "@{DIR}/arguments"]).file("arguments", &format!("-c\n{config}\n-t\n{CLUSTER}\n-s")),
        call(&["format", "-c", config, "-t", CLUSTER]),
        call(&["format", "-c", config, "-s"]),
        call(&["format", "-t", CLUSTER, "-s"]),
        call(&["format", "-c", "{DIR}/none", "-t", CLUSTER, "-s"]),
        call(&["format", "-c", config, "-t", CLUSTER, "-s", "extra"]),
        call(&["format", "-c", config, "-t", CLUSTER, "-s", "--nonsense"]),
        call(&["format", "--c", config, "-t", CLUSTER, "-s"]),
        call(&["nonsense"]),
        call(&["random-uuid"]),
        call(&["rand"]),
    ]
}

/// `info` on every kind of directory.
pub fn info() -> Vec<Case> {
    let two = Case {
        arguments: Case::call(&["info", "-c", "{DIR}/server.properties"]).arguments,
        ..Case::format(Role::Both, Quorum::Standalone, &[]).with("log.dirs={DIR}/b,{DIR}/a")
    };
    let with = |a: &str, b: &str| two.clone().file("a/meta.properties", a).file("b/meta.properties", b);
    let good = meta(CLUSTER, 1, DIRECTORY);
    let other = "MvDxzVmcRsaTz33bUuRU6A";
    vec![
        two.clone(),
        two.clone().folder("a"),
        two.clone().folder("a").folder("b"),
        two.clone().file("a", "a file"),
        with(&good, &meta(CLUSTER, 1, other)),
        with(&good, &meta("other", 1, other)),
        with(&good, &meta(CLUSTER, 2, other)),
        with(&good, &meta("other", 2, other)),
        with(&good, "version=0\nbroker.id=1\n"),
        with("version=0\nbroker.id=1\ncluster.id=x\n", &good),
        with(&good, "version=9"),
        with(&good, "version=1"),
        with(&good, ""),
        two.clone().file("a/meta.properties", &good).with("metadata.log.dir={DIR}/m"),
        two.clone().file("a/meta.properties", &meta(CLUSTER, 5, DIRECTORY)).folder("b"),
        two.clone().without("node.id"),
    ]
}

/// What the tool says of releases and levels.
pub fn mappings() -> Vec<Case> {
    let mut cases = vec![Case::call(&["version-mapping"]), Case::call(&["feature-dependencies"])];
    cases.extend(release_texts().iter().map(|release| Case::call(&["version-mapping", "-r", release])));
    let mut settings: Vec<String> = (-1..=36).map(|level| format!("metadata.version={level}")).collect();
    for feature in Catalog::kafka().features() {
        settings.extend((-1..=3).map(|level| format!("{}={level}", feature.name)));
    }
    settings.extend(
        [
            "foo",
            "foo=1",
            "=1",
            "group.version=x",
            "metadata.version=4.4-IV2",
            " group.version = 1 ",
            "group.version=",
        ]
        .map(str::to_owned),
    );
    cases.extend(settings.iter().map(|setting| Case::call(&["feature-dependencies", "-f", setting])));
    cases.push(Case::call(&[
        "feature-dependencies",
        "-f",
        "eligible.leader.replicas.version=1",
        "-f",
        "group.version=1",
    ]));
    cases
}

/// Where older tools take what ours refuses on purpose: what such a call has among its arguments, the version, and why.
const STRICTER: [(&str, &str, &str); 14] = [
    ("3.3-IV2", "3.7.2", "below the first version that a cluster can be formatted at"),
    ("3.3-IV2", "3.8.1", "the same"),
    ("3.0", "3.7.2", "the same"),
    ("3.0", "3.8.1", "the same"),
    ("3.3-IV2", "3.9.2", "below the first version that a cluster can be formatted at"),
    ("metadata.version=1", "3.9.2", "the same"),
    ("metadata.version=2", "3.9.2", "the same"),
    ("metadata.version=3", "3.9.2", "the same"),
    ("metadata.version=4", "3.9.2", "the same"),
    ("metadata.version=5", "3.9.2", "the same"),
    ("metadata.version=6", "3.9.2", "the same"),
    ("transaction.version=0", "3.9.2", "a feature that its nodes don't have"),
    ("streams.version=0", "4.1.2", "a feature that its nodes don't have"),
    ("3.0", "3.9.2", "below the first version that a cluster can be formatted at"),
];

/// Whether ours is meant to refuse what the tool of this version takes.
pub fn is_stricter(case: &Case, version: &str) -> bool {
    STRICTER
        .iter()
        .any(|(text, of, _why)| *of == version && case.arguments.iter().any(|argument| argument == text))
}

/// A part of the cases, the same for the same seed; all of them in the exhaustive run.
pub fn sample(mut cases: Vec<Case>, version: &str) -> Vec<Case> {
    const SAMPLE: usize = 250;
    if std::env::var_os("KAFKA_FEATURES_FULL").is_some() {
        return cases;
    }
    let seed: u64 = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    println!("Kafka {version}: {SAMPLE} of {} cases, of seed {seed}", cases.len());
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let mut random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    cases.shuffle(&mut random);
    cases.truncate(SAMPLE);
    cases
}
