# A worker of peers.py: `objects.rb OBJECTS PORT`; `/` touches few objects, `/all` all, `/sum` is a checksum of all.
# With the variable TIMER it touches one of them by itself at that interval, in seconds.
require "json"
require "socket"
require "zlib"

OBJECTS = Array.new(ARGV[0].to_i) { |n| { number: n, text: "value #{n} of #{ARGV[0]}" } }

def answer(path)
  case path
  when "/all" then OBJECTS.sum { |one| one[:number] }
  when "/sum" then OBJECTS.reduce(0) { |value, one| Zlib.crc32(one[:text], value) }
  else OBJECTS.last[:number]
  end
end

def serve(client)
  client.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
  while (line = client.gets)
    nil until client.gets.to_s.strip.empty?
    body = JSON.generate([OBJECTS.size, answer(line.split[1])])
    client.write("HTTP/1.1 200 OK\r\nContent-Length: #{body.bytesize}\r\n\r\n#{body}")
  end
end

if ENV["TIMER"]
  Thread.new do
    loop do
      sleep ENV["TIMER"].to_f
      OBJECTS.first.dup
    end
  end
end
server = TCPServer.new("127.0.0.1", ARGV[1].to_i)
loop { Thread.new(server.accept) { |client| serve(client) } }
