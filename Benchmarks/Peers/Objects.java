// A worker of peers.py: `Objects OBJECTS PORT`; `/` touches few objects, `/all` all, `/sum` is a checksum of all.
// With the variable TIMER it touches one of them by itself at that interval, in seconds.
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Timer;
import java.util.TimerTask;

public class Objects {
  record One(int number, String text) {}

  static final List<One> objects = new ArrayList<>();
  static volatile int seen;

  static long answer(String path) {
    long value = 0;
    switch (path) {
      case "/all" -> { for (One one : objects) value += one.number + one.text.length(); }
      case "/sum" -> {
        for (One one : objects) for (int i = 0; i < one.text.length(); i++) value = value * 31 + one.text.charAt(i);
      }
      default -> value = objects.get(objects.size() - 1).number;
    }
    return value;
  }

  public static void main(String[] words) throws Exception {
    int count = Integer.parseInt(words[0]);
    for (int n = 0; n < count; n++) objects.add(new One(n, "value " + n + " of " + count));
    String seconds = System.getenv("TIMER");
    if (seconds != null) {
      long interval = (long) (Double.parseDouble(seconds) * 1000);
      new Timer(true).schedule(new TimerTask() { public void run() { seen = objects.get(0).number; } }, interval, interval);
    }
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(words[1])), 0);
    server.createContext("/", exchange -> {
      byte[] body = ("[" + count + ", " + answer(exchange.getRequestURI().getPath()) + "]").getBytes();
      exchange.sendResponseHeaders(200, body.length);
      exchange.getResponseBody().write(body);
      exchange.close();
    });
    server.start();
  }
}
