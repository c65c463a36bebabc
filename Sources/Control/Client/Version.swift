/// The program, as it names itself.
public enum Dormouse {
  /// Semantic version of daemon, client and wire protocol: they ship as one file.
  public static let version = "0.1.0"
}
