//! What a person may do with the parts that a demo left up: where they are, and how to end them.

use crate::testbed::parts;
use crate::{KAFKA, Parts};

/// How to look around and how to stop.
pub(crate) fn guide(running: &Parts) -> String {
    let (server, kafka) = (&running.server, &running.kafka);
    let kubectl = server.kubectl().get_program().to_string_lossy().into_owned();
    let kubeconfig = server.kubeconfig();
    let api_server = kubeconfig.with_file_name("kube-apiserver.log");
    let brokers = kafka.brokers().join(",");
    format!(
        "
Everything stays up. In another terminal:
  export KUBECONFIG={kubeconfig}
  alias kubectl={kubectl}
  kubectl get kfeat -w
  kubectl describe kfeat kafka
consent to the step that is held, which can't be undone, and see it made:
  kubectl patch kfeat kafka --type=merge -p '{{\"spec\":{{\"allowOneWay\":[\"kraft.version\"]}}}}'
Kafka's brokers:      {brokers}
Kafka's controllers:  {controllers}
ask by Kafka's own tool:
  java -Dorg.slf4j.simpleLogger.defaultLogLevel=off -cp '{jars}/*' org.apache.kafka.tools.FeatureCommand --bootstrap-server {brokers} describe
logs:
  {operator}
  {nodes}/<node>/<start>.log
  {api_server}
To stop: Ctrl-C here, or `kill {pid}`. Nothing is left then, these files included.",
        kubeconfig = kubeconfig.display(),
        controllers = kafka.controllers().join(","),
        jars = parts::kafka(KAFKA).display(),
        operator = running.operator.log.display(),
        nodes = kafka.folder().display(),
        api_server = api_server.display(),
        pid = std::process::id(),
    )
}
