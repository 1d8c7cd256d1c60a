import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { Cluster, MAIN, rpc, until } from '../support/cluster.ts';

describe('how a node ends', () => {
  let cluster: Cluster | null = null;
  afterEach(() => cluster?.stop());

  it('hands its leadership over on SIGTERM and ends with 0', async () => {
    cluster = await Cluster.start();
    const leader = await cluster.leader();
    const process = cluster.nodes[leader];
    const { term } = await cluster.status();
    const exit = await process?.kill('SIGTERM');
    cluster.nodes[leader] = null;
    expect(exit).toEqual({ code: 0, signal: null });
    expect(process?.stderr).toContain('handed the leadership over');
    const now = await until('the next leader', async () => {
      const status = await cluster?.status();
      return status?.leaderId !== null && status?.leaderId !== `n${leader + 1}` ? status : undefined;
    });
    expect(now.term).toBe(term + 1);
  });

  it('stops itself with 70 and says why where a promise fails that nobody waits for', async () => {
    const fault = "process.once('SIGUSR2',()=>{void%20Promise.reject(new%20Error('planted'))})";
    cluster = await Cluster.start({
      nodes: 1,
      env: () => ({ NODE_OPTIONS: `--import=data:text/javascript,${fault}` }),
    });
    const [node] = cluster.nodes;
    const exit = await node?.kill('SIGUSR2');
    cluster.nodes[0] = null;
    expect(exit).toEqual({ code: 70, signal: null });
    const fatal = node?.stderr.split('\n').find((line) => line.includes('"fatal"'));
    expect(JSON.parse(fatal ?? '{}')).toMatchObject({
      level: 'fatal',
      node: 'n1',
      error: 'planted',
      msg: 'the node stops itself: an internal error',
    });
  });

  it('ends on SIGHUP as on SIGTERM, and names the signal', async () => {
    cluster = await Cluster.start();
    const leader = await cluster.leader();
    const process = cluster.nodes[leader];
    const exit = await process?.kill('SIGHUP');
    cluster.nodes[leader] = null;
    expect(exit).toEqual({ code: 0, signal: null });
    expect(process?.stderr).toContain('handed the leadership over');
    expect(process?.stderr).toMatch(/"signal":"SIGHUP","msg":"stopping"/);
  });

  it('serves on, as a broker does, where nobody reads its standard output', async () => {
    cluster = new Cluster({ nodes: 1 });
    await cluster.reservePorts();
    const node = unread(cluster.serveArguments(0));
    const address = cluster.address(0);
    const directory = mkdtempSync(join(tmpdir(), 'evenkeel-unread-'));
    const args = ['--id', 'b1', '--cluster-id', cluster.clusterId, '--data-dir', directory];
    const broker = unread(['broker', 'run', ...args, '--endpoints', address]);
    try {
      await until('the broker to be live', async () => {
        const { items } = await rpc<{ items: { lifecycle: string }[] }>(address, 'broker.list');
        return items[0]?.lifecycle === 'live';
      });
      for (const each of [broker, node]) {
        await until('its warning', async () => each.stderr().includes('standard output cannot be written'));
        each.process.kill('SIGTERM');
        expect(await each.exit).toBe(0);
      }
    } finally {
      for (const each of [broker, node]) each.process.kill('SIGKILL');
      rmSync(directory, { recursive: true });
    }
  });

  it('stops itself with 70 and says why once its disk takes no more', async () => {
    cluster = new Cluster({ nodes: 1 });
    await cluster.reservePorts();
    // Files end at 4 MiB for this process and its own children: the log cannot grow past that.
    const command = `ulimit -f 4096; trap '' XFSZ; exec "$0" "$@"`;
    const args = ['-c', command, process.execPath, MAIN, ...cluster.serveArguments(0)];
    const node = spawn('bash', args, { stdio: ['ignore', 'pipe', 'pipe'] });
    let stderr = '';
    node.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    const exited = once(node, 'exit');
    try {
      await once(node.stdout, 'data');
      const labels = { filler: 'x'.repeat(3_500) };
      await until('the node to end', async () => {
        for (let i = 0; i < 50 && node.exitCode === null; i++) {
          const name = `s-${i}-${process.hrtime.bigint()}`;
          await rpc(cluster?.address(0) ?? '', 'resource.create', {
            kind: 'stream',
            name,
            shards: 1,
            labels,
          });
        }
        return node.exitCode !== null;
      });
      const [code] = (await exited) as [number | null];
      expect(code).toBe(70);
      const lines = stderr.trim().split('\n');
      const last = lines
        .map((line) => JSON.parse(line) as Record<string, unknown>)
        .findLast(({ level }) => level === 'fatal');
      expect(last).toMatchObject({ level: 'fatal', node: 'n1', msg: 'the node stops itself' });
      expect(String(last?.['error'])).toMatch(/write|large|space|disk/i);
    } finally {
      node.kill('SIGKILL');
    }
  });
});

/** The command in a process whose standard output nobody reads any more. */
function unread(args: readonly string[]) {
  const child = spawn(process.execPath, [MAIN, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  child.stdout.destroy();
  let text = '';
  child.stderr.setEncoding('utf8').on('data', (more: string) => (text += more));
  const exit = once(child, 'exit').then(([code]) => code as number | null);
  return { process: child, exit, stderr: () => text };
}
