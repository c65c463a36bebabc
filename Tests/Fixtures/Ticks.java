/** Prints `ready`, and then `tick` each half second. */
public class Ticks {
  public static void main(String[] arguments) throws InterruptedException {
    System.out.println("ready");
    while (true) {
      Thread.sleep(500);
      System.out.println("tick");
    }
  }
}
