import java.io.ByteArrayInputStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

import com.fasterxml.jackson.databind.ObjectMapper;

/**
 * What Kafka and Java make of a configuration. Called like a tool: "properties FILE" prints what is read, "verdict FILE"
 * fails where Kafka would refuse to start with it, "keys" prints Kafka's own definition as a table. FILE is its content, in
 * base64.
 */
public final class Configuration {
    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "properties":
                System.out.println(new ObjectMapper().writeValueAsString(new TreeMap<>(read(args[1]))));
                break;
            case "verdict":
                verdict(read(args[1]));
                break;
            default:
                keys();
        }
    }

    private static Properties read(String base64) throws Exception {
        Properties properties = new Properties();
        properties.load(new ByteArrayInputStream(Base64.getDecoder().decode(base64.getBytes(StandardCharsets.US_ASCII))));
        return properties;
    }

    private static void verdict(Properties properties) throws Exception {
        Constructor<?> config = Class.forName("kafka.server.KafkaConfig").getConstructor(Map.class, boolean.class);
        try {
            config.newInstance(properties, false);
        } catch (InvocationTargetException refused) {
            throw new IllegalArgumentException(refused.getCause().getMessage());
        }
    }

    private static void keys() throws Exception {
        Object definition = Class.forName("org.apache.kafka.server.config.AbstractKafkaConfig").getField("CONFIG_DEF").get(null);
        Map<?, ?> keys = (Map<?, ?>) definition.getClass().getMethod("configKeys").invoke(definition);
        for (Map.Entry<?, ?> entry : new TreeMap<>(keys).entrySet()) {
            Object key = entry.getValue();
            String type = key.getClass().getField("type").get(key).toString().toLowerCase();
            String limits = limits(key.getClass().getField("validator").get(key));
            System.out.println(limits.isEmpty() ? entry.getKey() + "\t" + type : entry.getKey() + "\t" + type + "\t" + limits);
        }
    }

    private static String limits(Object validator) throws Exception {
        if (validator == null) {
            return "";
        }
        switch (validator.getClass().getSimpleName()) {
            case "Range":
                return text(field(validator, "min")) + ".." + text(field(validator, "max"));
            case "ValidString":
                return "one-of " + String.join(",", texts(field(validator, "validStrings")));
            case "CaseInsensitiveValidString":
                return "any-case " + String.join(",", new TreeSet<>(texts(field(validator, "validStrings"))));
            case "ValidList":
                String known = String.join(",", texts(field(field(validator, "validString"), "validStrings")));
                return (((boolean) field(validator, "isEmptyAllowed") ? "list " : "not-empty ") + known).trim();
            case "NonEmptyString":
                return "not-empty";
            case "LambdaValidator":
                // the one there is, of compression.gzip.level
                return validator.toString().equals("[1,...,9] or -1") ? "-1..9" : validator.toString();
            default:
                // checked where the key is read
                return "";
        }
    }

    private static Object field(Object object, String name) throws Exception {
        Field field = object.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(object);
    }

    private static String text(Object number) {
        return number == null ? "" : number.toString();
    }

    @SuppressWarnings("unchecked")
    private static java.util.Collection<String> texts(Object texts) {
        return texts instanceof List ? (List<String>) texts : (Set<String>) texts;
    }
}
