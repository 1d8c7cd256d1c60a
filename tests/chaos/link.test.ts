import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Link } from './link.ts';

const REDIRECT = pathToFileURL(join(import.meta.dirname, 'redirect.mjs')).href;

describe('a link between two brokers', () => {
  let echo: Server;
  let port: number;
  let link: Link;
  const sockets: Socket[] = [];
  beforeEach(async () => {
    echo = createServer((socket) => socket.pipe(socket));
    echo.listen(0, '127.0.0.1');
    await once(echo, 'listening');
    ({ port } = echo.address() as AddressInfo);
    link = await Link.open(port);
  });
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
    link.close();
    echo.close();
  });

  const dial = async (through: Link): Promise<Socket> => {
    const socket = connect(through.port, '127.0.0.1');
    sockets.push(socket);
    await once(socket, 'connect');
    return socket;
  };
  const echoed = async (socket: Socket, text: string): Promise<void> => {
    socket.write(text);
    expect(String((await once(socket, 'data'))[0])).toBe(text);
  };

  it('holds back bytes while it is cut, and lets them through once it is mended', async () => {
    const other = await Link.open(port);
    const socket = await dial(link);
    await echoed(socket, 'before');
    link.cut();
    const heard: string[] = [];
    socket.on('data', (data) => heard.push(String(data)));
    socket.write('during');
    await echoed(await dial(other), 'another link');
    other.close();
    expect(heard).toEqual([]);
    const mended = once(socket, 'data');
    link.mend();
    await mended;
    expect(heard).toEqual(['during']);
  });

  it('is taken by a process that dials the port it stands for', async () => {
    const nobody = 1;
    const dials = `import('node:net').then(({ connect }) => {
      const socket = connect(${nobody}, '127.0.0.1', () => socket.write('x'));
      socket.on('data', () => process.exit(0)).on('error', () => process.exit(1));
    })`;
    const child = spawn(process.execPath, ['--import', REDIRECT, '-e', dials], {
      env: { ...process.env, TEST_LINKS: JSON.stringify({ [nobody]: link.port }) },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    expect((await once(child, 'exit'))[0]).toBe(0);
  });
});
