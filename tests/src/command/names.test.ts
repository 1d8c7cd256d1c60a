import { describe, expect, it } from 'vitest';
import {
  idProblem,
  parseRequestId,
  parseResource,
  parseShard,
  resourceNameProblem,
} from '../../../src/command/index.ts';

describe('names', () => {
  it.each(['a', 'A9', '0', 'a.b_c-d', 'x'.repeat(128)])('%s is an id', (id) => {
    expect(idProblem('broker id', id)).toBeNull();
  });

  it.each(['', '.a', '-a', '_a', 'a b', 'a/b', 'é', 'a\n', 'x'.repeat(129), 'a:b'])('%j is no id', (id) => {
    expect(idProblem('broker id', id)).toMatch(/^broker id .* must begin with a letter or digit/);
  });

  it('of resources have one to three segments', () => {
    for (const name of ['a', 'a/b', 'a/b/c', 'a/3']) expect(resourceNameProblem(name)).toBeNull();
    expect(resourceNameProblem('a/b/c/d')).toMatch(/4 segments, at most 3/);
    expect(resourceNameProblem('a//b')).toMatch(/"" does not/);
    expect(resourceNameProblem('a/b c')).toMatch(/"b c" does not/);
    expect(resourceNameProblem('')).not.toBeNull();
  });

  it('in messages are cut', () => {
    const message = idProblem('zone', 'x'.repeat(5_000)) ?? '';
    expect(message.length).toBeLessThan(250);
  });
});

describe('shards and resources', () => {
  it('are read in their parts', () => {
    expect(parseShard('stream:orders/3')).toEqual({ kind: 'stream', name: 'orders', number: 3 });
    expect(parseShard('cache:a/b/c/0')).toEqual({ kind: 'cache', name: 'a/b/c', number: 0 });
    expect(parseShard('stream:a/7/12')).toEqual({ kind: 'stream', name: 'a/7', number: 12 });
    expect(parseResource('orders')).toEqual({ kind: 'stream', name: 'orders' });
    expect(parseResource('cache:a/b')).toEqual({ kind: 'cache', name: 'a/b' });
  });

  it.each([
    'orders/3',
    'stream:orders',
    'stream:orders/',
    'stream:orders/03',
    'stream:orders/-1',
    'stream:orders/1e3',
    'stream:/1',
    'topic:x/1',
    'stream:a/b/c/d/1',
    'stream:x/9999999999',
  ])('%s names no shard', (text) => expect(parseShard(text)).toBeNull());

  it.each(['', 'stream:', 'topic:x', 'a b', 'stream:a:b'])('%j names no resource', (text) => {
    expect(parseResource(text)).toBeNull();
  });
});

describe('request ids', () => {
  it('are <session>:<n>', () => {
    expect(parseRequestId('12:0')).toEqual({ session: 12, n: 0 });
    expect(parseRequestId('12:345')).toEqual({ session: 12, n: 345 });
  });

  it.each(['', '12', ':1', '0:1', '12:', '12:01', '12:-1', 'a:1', '1:2:3', ' 1:2', '1:9007199254740993'])(
    '%j is none',
    (text) => expect(() => parseRequestId(text)).toThrow(/must be <session>:<n>/),
  );
});
