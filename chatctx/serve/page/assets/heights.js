// Heights are the heights of rows: measured ones, and a guess for the others. Sum and find take O(log n), as sums of a Fenwick tree.
export class Heights {
  constructor(count, guess, each) {
    Object.assign(this, { guess, each });
    this.resize(count);
  }

  resize(count) {
    const old = this.each ?? [];
    this.each = new Float64Array(count).fill(this.guess);
    this.each.set(old.length > count ? old.subarray(0, count) : old);
    this.sums = new Float64Array(count + 1);
    for (let i = 1; i <= count; i++) {
      this.sums[i] += this.each[i - 1];
      const up = i + (i & -i);
      if (up <= count) this.sums[up] += this.sums[i];
    }
  }

  set(i, height) {
    const change = height - this.each[i];
    this.each[i] = height;
    for (let k = i + 1; k < this.sums.length; k += k & -k) this.sums[k] += change;
    return change;
  }

  // before is the height of all rows before row i.
  before(i) {
    let sum = 0;
    for (; i > 0; i -= i & -i) sum += this.sums[i];
    return sum;
  }

  // at is the row at a height.
  at(height) {
    let i = 0;
    let step = 1;
    while (step * 2 < this.sums.length) step *= 2;
    for (; step; step >>= 1) {
      if (i + step < this.sums.length && this.sums[i + step] <= height) {
        i += step;
        height -= this.sums[i];
      }
    }
    return Math.min(i, this.each.length - 1);
  }
}
