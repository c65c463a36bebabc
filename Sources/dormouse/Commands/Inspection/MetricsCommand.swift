import ArgumentParser
import Control

struct MetricsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "metrics", abstract: "Print metrics of the daemon and the workers for Prometheus.",
    discussion: """
      The metrics are OpenMetrics text, or the text format of Prometheus, which node_exporter's \
      textfile collector and promtool read. With --output the file is replaced as a whole; if no \
      daemon answers, it then has only dormouse_up 0, and the exit code is 4.

      Examples:
        dormouse metrics | grep footprint
        dormouse metrics -o /var/lib/prometheus/node-exporter/dormouse.prom
      """)
  @Option(
    help: ArgumentHelp(
      "The format of the text. Default: prometheus for a file that ends in .prom, otherwise "
        + "openmetrics.",
      valueName: "format"))
  var format: MetricsFormat?
  @Option(
    name: [.customShort("o"), .long],
    help: ArgumentHelp("Write this file instead of standard output.", valueName: "file"),
    completion: .file())
  var output: String?
  @OptionGroup var connection: ConnectionOptions

  /// The timeout of the daemon's answer. A scraper doesn't wait longer.
  private static let timeout = Duration.seconds(10)

  private var chosen: MetricsFormat {
    format ?? (output?.hasSuffix(".prom") == true ? .prometheus : .openMetrics)
  }

  func run() throws {
    guard let output else { return try Output.write(try page()) }
    let text: String
    do { text = try page() } catch {
      // Old values must not be scraped as if they were of now.
      try write(renderOpenMetrics(daemon: nil, workers: [], format: chosen), to: output)
      throw error
    }
    try write(text, to: output)
  }

  private func page() throws -> String {
    var daemon = try connection.connect()
    let response = try daemon.client.perform(.status, timeout: Self.timeout)
    guard response.result == .done, let report = response.daemon else {
      throw CommandFailure.noReport(of: "the daemon")
    }
    return renderOpenMetrics(daemon: report, workers: response.workers ?? [], format: chosen)
  }

  private func write(_ text: String, to path: String) throws(FileError) {
    let file = try PictureFile(path)
    do throws(FileError) { try file.write(text) } catch {
      file.discard()
      throw error
    }
  }
}

extension MetricsFormat: ExpressibleByArgument {}
