;; Sums over one row of logits, 4 values at a time. Rows.ts and Candidates.ts define the memory layout; `npm run rows`
;; compiles rows.wasm from this text. All lengths are in bytes and multiples of 1024, unless stated otherwise: 256 values are a
;; block, and each block has a sum of its own.
(module
  (memory (export "memory") 1)

  ;; The largest of the values in [at, end). NaN is ignored.
  (func (export "largest") (param $at i32) (param $end i32) (result f32)
    (local $a v128) (local $b v128) (local $c v128) (local $d v128)
    (local.set $a (f32x4.splat (f32.const -inf)))
    (local.set $b (local.get $a))
    (local.set $c (local.get $a))
    (local.set $d (local.get $a))
    (loop $more
      (local.set $a (f32x4.pmax (local.get $a) (v128.load (local.get $at))))
      (local.set $b (f32x4.pmax (local.get $b) (v128.load offset=16 (local.get $at))))
      (local.set $c (f32x4.pmax (local.get $c) (v128.load offset=32 (local.get $at))))
      (local.set $d (f32x4.pmax (local.get $d) (v128.load offset=48 (local.get $at))))
      (br_if $more (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 64))) (local.get $end))))
    (local.set $a (f32x4.pmax (f32x4.pmax (local.get $a) (local.get $b)) (f32x4.pmax (local.get $c) (local.get $d))))
    (f32.max
      (f32.max (f32x4.extract_lane 0 (local.get $a)) (f32x4.extract_lane 1 (local.get $a)))
      (f32.max (f32x4.extract_lane 2 (local.get $a)) (f32x4.extract_lane 3 (local.get $a)))))

  (func $sumOf (param $v v128) (result f32)
    (f32.add
      (f32.add (f32x4.extract_lane 0 (local.get $v)) (f32x4.extract_lane 1 (local.get $v)))
      (f32.add (f32x4.extract_lane 2 (local.get $v)) (f32x4.extract_lane 3 (local.get $v)))))

  ;; weight = exp((logit - largest) * scale) where the weight so far is at least `least`; 0 elsewhere, and where the exponent
  ;; is below -87. Writes one sum for each block. `scale` turns e^x into a power of two: 1 / (temperature * ln 2).
  ;;
  ;; 2^x = 2^(n + f): adding 1.5 * 2^23 rounds x to n in the lowest bits, a polynomial gives 2^f with a relative error of
  ;; 3e-7, and n is added to its exponent.
  (func (export "weigh")
    (param $logits i32) (param $weights i32) (param $sums i32) (param $bytes i32) (param $largest f32) (param $scale f32)
    (param $least f32)
    (local $end i32) (local $blockEnd i32) (local $sum v128) (local $kept v128) (local $x v128) (local $n v128)
    (local $f v128) (local $top v128) (local $by v128) (local $from v128)
    (local.set $top (f32x4.splat (local.get $largest)))
    (local.set $by (f32x4.splat (local.get $scale)))
    (local.set $from (f32x4.splat (local.get $least)))
    (local.set $end (i32.add (local.get $logits) (local.get $bytes)))
    (loop $block
      (local.set $sum (v128.const i32x4 0 0 0 0))
      (local.set $blockEnd (i32.add (local.get $logits) (i32.const 1024)))
      (loop $more
        (local.set $kept (f32x4.ge (v128.load (local.get $weights)) (local.get $from)))
        (if (v128.any_true (local.get $kept))
          (then
            (local.set $x
              (f32x4.mul (f32x4.sub (v128.load (local.get $logits)) (local.get $top)) (local.get $by)))
            (local.set $n (f32x4.add (local.get $x) (v128.const f32x4 12582912 12582912 12582912 12582912)))
            (local.set $f
              (f32x4.sub (local.get $x) (f32x4.sub (local.get $n) (v128.const f32x4 12582912 12582912 12582912 12582912))))
            (local.set $kept
              (v128.and (local.get $kept) (f32x4.ge (local.get $x) (v128.const f32x4 -125 -125 -125 -125))))
            (local.set $x
              (f32x4.relaxed_madd (local.get $f) (v128.const f32x4 0.0013264727 0.0013264727 0.0013264727 0.0013264727)
                (v128.const f32x4 0.0096715127 0.0096715127 0.0096715127 0.0096715127)))
            (local.set $x
              (f32x4.relaxed_madd (local.get $f) (local.get $x)
                (v128.const f32x4 0.0555073374 0.0555073374 0.0555073374 0.0555073374)))
            (local.set $x
              (f32x4.relaxed_madd (local.get $f) (local.get $x)
                (v128.const f32x4 0.2402224209 0.2402224209 0.2402224209 0.2402224209)))
            (local.set $x
              (f32x4.relaxed_madd (local.get $f) (local.get $x)
                (v128.const f32x4 0.6931469776 0.6931469776 0.6931469776 0.6931469776)))
            (local.set $x
              (f32x4.relaxed_madd (local.get $f) (local.get $x)
                (v128.const f32x4 1 1 1 1)))
            (local.set $x
              (v128.and (local.get $kept) (i32x4.add (local.get $x) (i32x4.shl (local.get $n) (i32.const 23)))))
            (v128.store (local.get $weights) (local.get $x))
            (local.set $sum (f32x4.add (local.get $sum) (local.get $x))))
          (else
            (v128.store (local.get $weights) (v128.const i32x4 0 0 0 0))))
        (local.set $weights (i32.add (local.get $weights) (i32.const 16)))
        (br_if $more
          (i32.lt_u (local.tee $logits (i32.add (local.get $logits) (i32.const 16))) (local.get $blockEnd))))
      (f32.store (local.get $sums) (call $sumOf (local.get $sum)))
      (local.set $sums (i32.add (local.get $sums) (i32.const 4)))
      (br_if $block (i32.lt_u (local.get $logits) (local.get $end)))))

  ;; Sums of the weights of all values, one for each block. The weights are those of `weigh`.
  (func (export "total")
    (param $logits i32) (param $sums i32) (param $bytes i32) (param $largest f32) (param $scale f32)
    (local $end i32) (local $blockEnd i32) (local $sum v128) (local $kept v128) (local $x v128) (local $n v128)
    (local $f v128) (local $top v128) (local $by v128)
    (local.set $top (f32x4.splat (local.get $largest)))
    (local.set $by (f32x4.splat (local.get $scale)))
    (local.set $end (i32.add (local.get $logits) (local.get $bytes)))
    (loop $block
      (local.set $sum (v128.const i32x4 0 0 0 0))
      (local.set $blockEnd (i32.add (local.get $logits) (i32.const 1024)))
      (loop $more
        (local.set $x
          (f32x4.mul (f32x4.sub (v128.load (local.get $logits)) (local.get $top)) (local.get $by)))
        (local.set $n (f32x4.add (local.get $x) (v128.const f32x4 12582912 12582912 12582912 12582912)))
        (local.set $f
          (f32x4.sub (local.get $x) (f32x4.sub (local.get $n) (v128.const f32x4 12582912 12582912 12582912 12582912))))
        (local.set $kept (f32x4.ge (local.get $x) (v128.const f32x4 -125 -125 -125 -125)))
        (local.set $x
          (f32x4.relaxed_madd (local.get $f) (v128.const f32x4 0.0013264727 0.0013264727 0.0013264727 0.0013264727)
            (v128.const f32x4 0.0096715127 0.0096715127 0.0096715127 0.0096715127)))
        (local.set $x
          (f32x4.relaxed_madd (local.get $f) (local.get $x)
            (v128.const f32x4 0.0555073374 0.0555073374 0.0555073374 0.0555073374)))
        (local.set $x
          (f32x4.relaxed_madd (local.get $f) (local.get $x)
            (v128.const f32x4 0.2402224209 0.2402224209 0.2402224209 0.2402224209)))
        (local.set $x
          (f32x4.relaxed_madd (local.get $f) (local.get $x)
            (v128.const f32x4 0.6931469776 0.6931469776 0.6931469776 0.6931469776)))
        (local.set $x
          (f32x4.relaxed_madd (local.get $f) (local.get $x)
            (v128.const f32x4 1 1 1 1)))
        (local.set $sum
          (f32x4.add (local.get $sum)
            (v128.and (local.get $kept) (i32x4.add (local.get $x) (i32x4.shl (local.get $n) (i32.const 23))))))
        (br_if $more
          (i32.lt_u (local.tee $logits (i32.add (local.get $logits) (i32.const 16))) (local.get $blockEnd))))
      (f32.store (local.get $sums) (call $sumOf (local.get $sum)))
      (local.set $sums (i32.add (local.get $sums) (i32.const 4)))
      (br_if $block (i32.lt_u (local.get $logits) (local.get $end)))))

  ;; Copies the values that are at least `least` to `into`, and writes to `begins` where each block's copies begin. Returns
  ;; where the copies end; up to 16 bytes beyond are written too. `table` has for each mask of 4 lanes the shuffle of 16
  ;; bytes that moves these lanes to the front. The only branch is whether any of 16 values qualifies: with a tenth of the
  ;; values qualifying at random, a branch for each value would be mispredicted so often that it dominated the time.
  (func (export "collect")
    (param $logits i32) (param $bytes i32) (param $least f32) (param $into i32) (param $begins i32) (param $table i32)
    (result i32)
    (local $end i32) (local $blockEnd i32) (local $from v128) (local $mask i32)
    (local.set $from (f32x4.splat (local.get $least)))
    (local.set $end (i32.add (local.get $logits) (local.get $bytes)))
    (loop $block
      (i32.store (local.get $begins) (local.get $into))
      (local.set $begins (i32.add (local.get $begins) (i32.const 4)))
      (local.set $blockEnd (i32.add (local.get $logits) (i32.const 1024)))
      (loop $more
        (if
          (v128.any_true
            (v128.or
              (v128.or
                (f32x4.ge (v128.load (local.get $logits)) (local.get $from))
                (f32x4.ge (v128.load offset=16 (local.get $logits)) (local.get $from)))
              (v128.or
                (f32x4.ge (v128.load offset=32 (local.get $logits)) (local.get $from))
                (f32x4.ge (v128.load offset=48 (local.get $logits)) (local.get $from)))))
          (then
            (local.set $mask (i32x4.bitmask (f32x4.ge (v128.load (local.get $logits)) (local.get $from))))
            (v128.store (local.get $into)
              (i8x16.relaxed_swizzle
                (v128.load (local.get $logits))
                (v128.load (i32.add (local.get $table) (i32.shl (local.get $mask) (i32.const 4))))))
            (local.set $into (i32.add (local.get $into) (i32.shl (i32.popcnt (local.get $mask)) (i32.const 2))))
            (local.set $mask (i32x4.bitmask (f32x4.ge (v128.load offset=16 (local.get $logits)) (local.get $from))))
            (v128.store (local.get $into)
              (i8x16.relaxed_swizzle
                (v128.load offset=16 (local.get $logits))
                (v128.load (i32.add (local.get $table) (i32.shl (local.get $mask) (i32.const 4))))))
            (local.set $into (i32.add (local.get $into) (i32.shl (i32.popcnt (local.get $mask)) (i32.const 2))))
            (local.set $mask (i32x4.bitmask (f32x4.ge (v128.load offset=32 (local.get $logits)) (local.get $from))))
            (v128.store (local.get $into)
              (i8x16.relaxed_swizzle
                (v128.load offset=32 (local.get $logits))
                (v128.load (i32.add (local.get $table) (i32.shl (local.get $mask) (i32.const 4))))))
            (local.set $into (i32.add (local.get $into) (i32.shl (i32.popcnt (local.get $mask)) (i32.const 2))))
            (local.set $mask (i32x4.bitmask (f32x4.ge (v128.load offset=48 (local.get $logits)) (local.get $from))))
            (v128.store (local.get $into)
              (i8x16.relaxed_swizzle
                (v128.load offset=48 (local.get $logits))
                (v128.load (i32.add (local.get $table) (i32.shl (local.get $mask) (i32.const 4))))))
            (local.set $into (i32.add (local.get $into) (i32.shl (i32.popcnt (local.get $mask)) (i32.const 2))))))
        (br_if $more
          (i32.lt_u (local.tee $logits (i32.add (local.get $logits) (i32.const 64))) (local.get $blockEnd))))
      (br_if $block (i32.lt_u (local.get $logits) (local.get $end))))
    (local.get $into))

  ;; Sums of the weights that are at least `least`, one for each block, and their count.
  (func (export "above")
    (param $weights i32) (param $sums i32) (param $bytes i32) (param $least f32) (result i32)
    (local $end i32) (local $blockEnd i32) (local $sum v128) (local $count v128) (local $w v128) (local $kept v128)
    (local $from v128)
    (local.set $from (f32x4.splat (local.get $least)))
    (local.set $end (i32.add (local.get $weights) (local.get $bytes)))
    (loop $block
      (local.set $sum (v128.const i32x4 0 0 0 0))
      (local.set $blockEnd (i32.add (local.get $weights) (i32.const 1024)))
      (loop $more
        (local.set $w (v128.load (local.get $weights)))
        (local.set $kept (f32x4.ge (local.get $w) (local.get $from)))
        (local.set $sum (f32x4.add (local.get $sum) (v128.and (local.get $w) (local.get $kept))))
        (local.set $count (i32x4.sub (local.get $count) (local.get $kept)))
        (br_if $more
          (i32.lt_u (local.tee $weights (i32.add (local.get $weights) (i32.const 16))) (local.get $blockEnd))))
      (f32.store (local.get $sums) (call $sumOf (local.get $sum)))
      (local.set $sums (i32.add (local.get $sums) (i32.const 4)))
      (br_if $block (i32.lt_u (local.get $weights) (local.get $end))))
    (i32.add
      (i32.add (i32x4.extract_lane 0 (local.get $count)) (i32x4.extract_lane 1 (local.get $count)))
      (i32.add (i32x4.extract_lane 2 (local.get $count)) (i32x4.extract_lane 3 (local.get $count)))))

  ;; Adds each weight to its bucket: 8 bytes of sum, 4 of count, 4 unused. A bucket is the weight's highest 12 bits:
  ;; 8 buckets for each power of two; a weight of 1 is in bucket 1016. `bytes` is any multiple of 4 above 0.
  (func (export "classify") (param $weights i32) (param $bytes i32) (param $buckets i32)
    (local $end i32) (local $w f32) (local $bucket i32)
    (local.set $end (i32.add (local.get $weights) (local.get $bytes)))
    (loop $more
      (local.set $w (f32.load (local.get $weights)))
      (local.set $bucket
        (i32.add
          (local.get $buckets)
          (i32.shl (i32.shr_u (i32.reinterpret_f32 (local.get $w)) (i32.const 20)) (i32.const 4))))
      (f64.store (local.get $bucket) (f64.add (f64.load (local.get $bucket)) (f64.promote_f32 (local.get $w))))
      (i32.store offset=8 (local.get $bucket) (i32.add (i32.load offset=8 (local.get $bucket)) (i32.const 1)))
      (br_if $more
        (i32.lt_u (local.tee $weights (i32.add (local.get $weights) (i32.const 4))) (local.get $end)))))

  ;; Copies the weights in [least, below) to `into` and returns where the copies end; stops when `intoEnd` is reached.
  (func (export "gather")
    (param $weights i32) (param $bytes i32) (param $least f32) (param $below f32) (param $into i32) (param $intoEnd i32)
    (result i32)
    (local $end i32) (local $w f32) (local $lane i32) (local $v v128)
    (local.set $end (i32.add (local.get $weights) (local.get $bytes)))
    (loop $more
      (local.set $v (v128.load (local.get $weights)))
      (if
        (v128.any_true
          (v128.and
            (f32x4.ge (local.get $v) (f32x4.splat (local.get $least)))
            (f32x4.lt (local.get $v) (f32x4.splat (local.get $below)))))
        (then
          (local.set $lane (i32.const 0))
          (loop $lanes
            (local.set $w (f32.load (i32.add (local.get $weights) (local.get $lane))))
            (if
              (i32.and
                (i32.and (f32.ge (local.get $w) (local.get $least)) (f32.lt (local.get $w) (local.get $below)))
                (i32.lt_u (local.get $into) (local.get $intoEnd)))
              (then
                (f32.store (local.get $into) (local.get $w))
                (local.set $into (i32.add (local.get $into) (i32.const 4)))))
            (br_if $lanes
              (i32.lt_u (local.tee $lane (i32.add (local.get $lane) (i32.const 4))) (i32.const 16))))))
      (br_if $more
        (i32.and
          (i32.lt_u (local.tee $weights (i32.add (local.get $weights) (i32.const 16))) (local.get $end))
          (i32.lt_u (local.get $into) (local.get $intoEnd)))))
    (local.get $into)))
