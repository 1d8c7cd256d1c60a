import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const PROGRAM = join(import.meta.dirname, '..', '..', 'support', 'print-snapshots.ts');

interface Printed {
  readonly snapshots: string;
  readonly zoneOffsetMin: number;
  readonly number: string;
  readonly order: string;
}

function printed(environment: Readonly<Record<string, string>>, ...seed: string[]): Promise<Printed> {
  const env = { ...process.env, TZ: 'UTC', LC_ALL: 'C', ...environment };
  return new Promise((resolve, reject) => {
    execFile(process.execPath, ['--import', 'tsx', PROGRAM, ...seed], { env }, (error, stdout, stderr) => {
      if (error !== null) {
        reject(error);
        return;
      }
      const [zoneOffsetMin, number, order] = JSON.parse(stderr) as [number, string, string];
      resolve({ snapshots: stdout, zoneOffsetMin, number, order });
    });
  });
}

test('hazard 22: other orders of Maps, another time zone and locale: snapshots are the same byte for byte', async () => {
  const plain = await printed({});
  expect(plain).toMatchObject({ zoneOffsetMin: 0, number: '0.5', order: '12345678' });
  expect(new Set(plain.snapshots.split('\n')).size).toBeGreaterThan(30);
  const abroad = { TZ: 'Pacific/Kiritimati', LC_ALL: 'de_DE.UTF-8' };
  for (const seed of ['1', '2', '3']) {
    const other = await printed(abroad, seed);
    // It did run elsewhere, and in another order.
    expect(other).toMatchObject({ zoneOffsetMin: 10 * 60 + 40, number: '0,5' });
    expect(other.order).not.toBe(plain.order);
    expect(other.snapshots).toBe(plain.snapshots);
  }
});
