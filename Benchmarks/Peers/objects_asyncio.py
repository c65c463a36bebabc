#!/usr/bin/env python3
"""A worker of peers.py on python's event loop: `objects_asyncio.py OBJECTS PORT`; `/` touches few objects, `/all` all,
`/sum` is a checksum of all."""
import asyncio
import json
import sys
import zlib

OBJECTS = [{"number": n, "text": f"value {n}"} for n in range(int(sys.argv[1]))]


def answer(request):
    if request.startswith(b"GET /all"):
        return sum(one["number"] for one in OBJECTS)
    if request.startswith(b"GET /sum"):
        value = 0
        for one in OBJECTS:
            value = zlib.crc32(one["text"].encode(), value)
        return value
    return OBJECTS[-1]["number"]


async def serve(reader, writer):
    try:
        while True:
            request = await reader.readuntil(b"\r\n\r\n")
            body = json.dumps([len(OBJECTS), answer(request)]).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[2]))
    async with server:
        await server.serve_forever()


asyncio.run(main())
