import Policy
import Testing

@Suite("Names of command lines") struct CommandNameTests {
  @Test(
    "A worker is named after its program, or after the script or package that it runs",
    arguments: [
      ("/usr/bin/clangd --log=error", "clangd"), ("redis-server --port 6379", "redis-server"),
      ("python3 x.py", "x"), ("/usr/bin/python3.12 -u -W ignore /srv/poll.py --port 1", "poll"),
      ("python3 -m http.server 8080", "http.server"), ("python3 -c pass", "python3"),
      ("python3", "python3"), ("npx @modelcontextprotocol/server-github", "server-github"),
      ("npx -y @modelcontextprotocol/server-github@1.2 /tmp", "server-github"),
      ("npx tsx watch.ts", "watch"), ("npm exec mcp-github", "mcp-github"),
      ("uvx mcp-git", "mcp-git"),
      ("uv run --with mcp server.py", "server"),
      ("node /srv/mcp-github/dist/index.js", "mcp-github"),
      ("node --require ./env.js app.mjs", "app"), ("java -Xmx1g -jar /opt/shop.jar", "shop"),
      ("env PORT=1 nice -n 5 ruby bot.rb", "bot"), ("sh -c true", "sh"), ("bash ./run.sh", "run"),
      ("/opt/app/bin/main", "app"), ("index.js", "index"), ("npx @acme/cli", "acme"),
    ])
  func names(line: String, name: String) {
    #expect(NameRule.name(of: line.split(separator: " ").map(String.init)) == name)
  }

  @Test(
    "A script of the working directory's package is distinguished from a file or another package",
    arguments: [
      ("npm start", true), ("npm run dev", true), ("/usr/bin/npm --silent run build:css", true),
      ("yarn dev", true), ("pnpm test", true), ("bun run dev", true), ("bun server.ts", false),
      ("bun run server.ts", false), ("npm exec mcp-github", false), ("pnpm dlx x", false),
      ("npx start", false), ("npm", false), ("node start", false),
    ])
  func packageScripts(line: String, isOne: Bool) {
    #expect(
      NameRule.runsPackageScript(line.split(separator: " ").map(String.init)) == isOne, "\(line)")
  }

  @Test(arguments: [
    [], [""], ["/"], ["-x"], [".hidden"], ["a b\nc"], ["größe"], ["python3", "/", "x"],
    ["..", "."],
    [String(repeating: "é", count: 90)], ["node", "-"], ["npx", "@"], ["env", "="],
  ])
  func `Any command line gives a valid name`(command: [String]) {
    let name = NameRule.name(of: command)
    #expect(NameRule.allows(name) && name.utf8.count <= 40, "\(name)")
  }
}
