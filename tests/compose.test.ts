import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CONTAINER_DATA, localCommandLines, readCompose } from './support/compose.ts';

const compose = readCompose();
const services = Object.entries(compose.services);

describe('docker-compose.yml', () => {
  it('has three nodes with a volume each and the same image', () => {
    expect(services.map(([name]) => name)).toEqual(['n1', 'n2', 'n3']);
    for (const [name, { volumes, image }] of services) {
      expect(volumes).toEqual([`${name}:${CONTAINER_DATA}`]);
      expect(image).toBe('evenkeel');
    }
    expect(Object.keys(compose.volumes)).toEqual(['n1', 'n2', 'n3']);
  });

  it('starts every node with one constant command line that differs in the name alone', () => {
    const [[, first] = []] = services;
    for (const [name, { command }] of services) {
      expect(command).toContain(`--node-id=${name}`);
      expect(command).toContain('--initial-cluster-state=new');
      expect(command).toContain('--insecure');
      const asFirst = command.map((argument) => argument.replace(`--node-id=${name}`, '--node-id=n1'));
      expect(asFirst).toEqual(first?.command);
    }
  });

  it('checks liveness, not readiness: without a quorum nothing is restarted', () => {
    const dockerfile = readFileSync(join(import.meta.dirname, '..', 'Dockerfile'), 'utf8');
    for (const [, { healthcheck, restart }] of services) {
      expect(healthcheck.test.join(' ')).toContain('/livez');
      expect(restart).toBe('unless-stopped');
    }
    expect(dockerfile).toMatch(/HEALTHCHECK[^]*\/livez/);
    expect(dockerfile).toMatch(/^USER node$/m);
  });

  it('publishes on loopback only', () => {
    const published = services.flatMap(([, { ports }]) => ports);
    expect(published).toEqual(['127.0.0.1:7401:7401', '127.0.0.1:7402:7401', '127.0.0.1:7403:7401']);
  });
});

describe('its command lines on this machine', () => {
  const places = Object.fromEntries(
    ['n1', 'n2', 'n3'].map((name, i) => [
      name,
      { clientPort: 8001 + i, peerPort: 9001 + i, directory: `/data/${name}` },
    ]),
  );

  it('change in hosts, ports and directories and in nothing else', () => {
    expect(localCommandLines(compose, places)['n2']).toEqual([
      'serve',
      '--node-id=n2',
      '--cluster-id=compose',
      '--members=n1=127.0.0.1:9001,n2=127.0.0.1:9002,n3=127.0.0.1:9003',
      '--listen=127.0.0.1:8002',
      '--peer-listen=127.0.0.1:9002',
      '--data-dir=/data/n2',
      '--initial-cluster-state=new',
      '--insecure',
    ]);
  });

  it('cannot be had where a host is not known', () => {
    expect(() => localCommandLines(compose, { n1: places['n1']! })).toThrow('no place for n2');
  });
});
