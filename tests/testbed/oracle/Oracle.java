import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;

/**
 * Runs Kafka's own command-line tools, many calls in one JVM. Each line of standard input is a call,
 * {"tool": …, "args": […]}; each is answered by one line, {"exit": …, "stdout": …, "stderr": …}.
 */
public final class Oracle {
    /** Each tool's class, newest name first: some were Scala once, and moved. */
    private static final Map<String, List<String>> TOOLS = Map.of(
        "configuration", List.of("Configuration"),
        "kafka-storage", List.of("kafka.tools.StorageTool"),
        "kafka-features", List.of("org.apache.kafka.tools.FeatureCommand"),
        "kafka-cluster", List.of("org.apache.kafka.tools.ClusterTool"),
        "kafka-metadata-quorum", List.of("org.apache.kafka.tools.MetadataQuorumCommand"),
        "kafka-leader-election", List.of("org.apache.kafka.tools.LeaderElectionCommand"),
        "kafka-topics", List.of("org.apache.kafka.tools.TopicCommand"),
        "kafka-configs", List.of("org.apache.kafka.tools.ConfigCommand", "kafka.admin.ConfigCommand"),
        "kafka-dump-log", List.of("org.apache.kafka.tools.DumpLogSegments", "kafka.tools.DumpLogSegments"));

    private static final ByteArrayOutputStream OUT = new ByteArrayOutputStream();
    private static final ByteArrayOutputStream ERR = new ByteArrayOutputStream();

    /** Thrown in place of ending the JVM; an Error, so that no tool catches it by accident. */
    private static final class Exited extends Error {
        final int status;

        Exited(int status) {
            super(null, null, false, false);
            this.status = status;
        }
    }

    /** Tools and their argument parser end the JVM in several ways; this catches all of them. */
    @SuppressWarnings("removal")
    private static final class NoExit extends SecurityManager {
        @Override
        public void checkExit(int status) {
            throw new Exited(status);
        }

        @Override
        public void checkPermission(java.security.Permission permission) {
        }
    }

    public static void main(String[] none) throws Exception {
        PrintStream answers = System.out;
        installNoExit();
        // set once for all calls: Scala's console keeps the streams that it saw first
        System.setOut(new PrintStream(OUT, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(ERR, true, StandardCharsets.UTF_8));
        ObjectMapper json = new ObjectMapper();
        BufferedReader calls = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = calls.readLine(); line != null; line = calls.readLine()) {
            JsonNode call = json.readTree(line);
            String[] args = json.convertValue(call.get("args"), String[].class);
            ObjectNode answer = run(json, call.get("tool").asText(), args);
            answers.println(json.writeValueAsString(answer));
            answers.flush();
        }
    }

    @SuppressWarnings("removal")
    private static void installNoExit() {
        // JMX asks the policy itself, past the security manager
        java.security.Policy.setPolicy(new java.security.Policy() {
            @Override
            public boolean implies(java.security.ProtectionDomain domain, java.security.Permission permission) {
                return true;
            }
        });
        System.setSecurityManager(new NoExit());
    }

    private static ObjectNode run(ObjectMapper json, String tool, String[] args) throws Exception {
        OUT.reset();
        ERR.reset();
        int exit = 0;
        try {
            classOf(tool).getMethod("main", String[].class).invoke(null, (Object) args);
        } catch (InvocationTargetException thrown) {
            Throwable cause = thrown.getCause();
            if (cause instanceof Exited) {
                exit = ((Exited) cause).status;
            } else {
                exit = 1;
                StringWriter trace = new StringWriter();
                cause.printStackTrace(new PrintWriter(trace));
                System.err.print("Exception in thread \"main\" " + trace);
            }
        }
        return json.createObjectNode()
            .put("exit", exit)
            .put("stdout", OUT.toString(StandardCharsets.UTF_8))
            .put("stderr", ERR.toString(StandardCharsets.UTF_8));
    }

    private static Class<?> classOf(String tool) throws ClassNotFoundException {
        for (String name : TOOLS.getOrDefault(tool, List.of())) {
            try {
                return Class.forName(name);
            } catch (ClassNotFoundException older) {
                // the next name
            }
        }
        throw new ClassNotFoundException("no tool of this Kafka is called " + tool);
    }
}
