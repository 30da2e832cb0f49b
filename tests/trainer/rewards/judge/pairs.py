"""Answers and gold answers of our own, with the verdicts that docs/judge.md's policy gives them.

A line is `answer  ==  gold` where they are equal, `answer  !=  gold` where they differ; the answer stands in a box.
"""

NUMBERS = r"""
57  ==  57
58  !=  57
-3  ==  -3
3  !=  -3
−3  ==  -3
007  ==  7
070  !=  7
-0  ==  0
27  ==  27.0
27.5  !=  27.0
.5  ==  0.5
0.50  ==  1/2
\frac{2}{4}  ==  0.5
1/3  ==  \frac{1}{3}
0.333  !=  1/3
0.33333333333333333333333333333333333333333333333333  !=  1/3
0.\overline{3}  ==  1/3
0.1\overline{6}  ==  \frac16
0.\overline{3}  !=  0.3
3.1416  !=  \pi
3.14159265358979323846264338327950288419716939937510582097494459230781640628620899  !=  \pi
1.414  !=  \sqrt{2}
1.7320508  !=  \sqrt{3}
1,234  ==  1234
1,234,567  ==  1234567
1,2345  !=  12345
12,34  !=  1234
1{,}234  ==  1234
1\,234  ==  1234
11,\! 111,\! 111,\! 100  ==  11111111100
10,\!080  ==  10080
1,235  !=  1234
1,234.5  ==  1234.5
4.5e33  ==  4.5 \times 10^{33}
4.5e33  !=  4.5e32
4.5E33  ==  4.5e33
1e-3  ==  0.001
1e3  ==  1000
-1./3  ==  -\frac{1}{3}
-3./2  ==  -1.5
3\frac{1}{2}  ==  3.5
3 1/2  ==  \frac{7}{2}
3\frac12  ==  7/2
3\frac{1}{2}  !=  \frac{3}{2}
-2\frac{1}{4}  ==  -2.25
-2\frac{1}{4}  !=  -1.75
137 \frac{1}{2}  ==  137.5
3½  ==  3.5
½  ==  0.5
¾  ==  3/4
⅔  !=  3/2
٣٤  ==  34
１２  ==  12
√2  ==  \sqrt{2}
√3  !=  \sqrt{2}
2√5  ==  2\sqrt5
∛8  ==  2
5²  ==  25
5²  !=  52
2⁻¹  ==  0.5
2π  ==  2\pi
π/2  ==  \frac{\pi}{2}
π  !=  \pi/2
2**3  ==  8
2**3  !=  6
2^3  ==  8
10^3  ==  1000
10^3  !=  9
2^{10}  ==  1024
≈ 3.14  ==  3.14
\approx 3.14  ==  3.14
≈ 3.14  !=  \pi
52_8  ==  52_8
52  ==  52_8
52_{8}  ==  52_8
52_8  ==  52
42  !=  52_8
52_7  !=  52_8
53_8  !=  52_8
4210_5  ==  4210_{5}
4210_{\text{five}}  ==  4210_5
2516_8  !=  2516_9
1101_2  !=  13
A3_{16}  ==  A3
10001  !=  10000
5000  !=  50
50  !=  5000
0.5  !=  50
1000000  ==  10^6
12  !=  21
\infty  ==  ∞
-\infty  !=  \infty
\frac43  ==  \frac{4}{3}
\frac 59  ==  5/9
\dfrac{14}{3}  ==  \frac{14}{3}
\tfrac{14}{3}  ==  \frac{14}{3}
\frac{14}{4}  !=  \frac{14}{3}
\frac{1}{2}  !=  \frac{1}{3}
\frac{-1}{2}  ==  -\frac{1}{2}
\frac{1}{-2}  ==  -\frac{1}{2}
14/3  ==  \frac{14}{3}
2^{100}  ==  1267650600228229401496703205376
2^{100}  !=  1267650600228229401496703205377
100!/98!  ==  9900
3+4i  ==  4i+3
3-4i  !=  3+4i
i^2  ==  -1
\frac{100!}{2^{50}}  ==  \frac{100!}{2^{50}}
\frac{100!}{2^{50}}  !=  \frac{100!}{2^{51}}
2021 \cdot 505 \cdot 337  ==  343943885
\sqrt{4}  ==  2
\sqrt{8}  ==  2\sqrt{2}
\frac{1}{\sqrt{2}}  ==  \frac{\sqrt{2}}{2}
\frac{6}{\sqrt[3]{9}}  ==  2\sqrt[3]{3}
1 - \frac{1}{e}  !=  1 + \frac{1}{e}
5!  ==  120
\binom{5}{2}  ==  10
\log_2 8  ==  3
\sin 30^\circ  ==  \frac12
\cos\frac{\pi}{3}  ==  0.5
1.0  ==  1
2.50  ==  2.5
100  !=  1,00
5 7  !=  57
2021 \cdot 505  !=  343943885
0.1  !=  1/9
0.67  !=  2/3
0.6666666667  !=  \frac{2}{3}
2.718281828  !=  e
22/7  !=  \pi
1e4  !=  1e5
-57  !=  57
57  !=  -57
5.7  !=  57
\frac{57}{10}  !=  57
1,234  !=  1.234
1.234  !=  1234
123,4  !=  1234
3\frac{1}{2}  !=  \frac{1}{2}
3\frac{1}{2}  !=  \frac{31}{2}
½  !=  2
x²  !=  x_2
√4  !=  4
2√3  !=  √6
3π  !=  π^3
2^3  !=  6
2^{-3}  !=  -8
(-2)^3  !=  8
-2^2  !=  4
52_9  !=  52_8
10_2  !=  2
4.5 \times 10^{33}  !=  4.5 \times 10^{32}
3 \times 10^5  !=  3^{10}
99999  !=  100000
0.999  !=  1
\sqrt{2}+\sqrt{3}  !=  \sqrt{5}
\sqrt{10}  !=  3.162
3i  !=  3
5!  !=  5
\binom{5}{2}  !=  \frac{5}{2}
\log_2 8  !=  \log_3 8
\cos 60^\circ  !=  60
"""

QUANTITIES = r"""
50\%  ==  50%
50\%  ==  0.5
50\%  ==  \frac12
50\%  ==  50
50  ==  50\%
0.5  ==  50\%
50  !=  0.5
0.5\%  ==  0.005
0.5\%  !=  0.5
0.5  !=  0.5\%
5\%  !=  0.5
62.5%  ==  62.5 percent
62.5 pct  ==  62.5\%
12.5\%  ==  1/8
100\%  ==  1
1\%  ==  1
1\%  ==  0.01
25\%  !=  75\%
25\%  !=  0.75
5 cm  ==  5
5  ==  5\text{ cm}
5\text{ cm}  ==  5 centimeters
5 cm  !=  5 m
5\text{ km}  !=  5\text{ miles}
5 cm  !=  6 cm
100 cm  !=  1 m
15 cm²  ==  15\mbox{ cm}^2
15 square centimeters  ==  15\mbox{ cm}^2
15\ \text{cm}^2  ==  15\text{ sq cm}
15 centimeters squared  ==  15 cm^2
15 cm  !=  15\mbox{ cm}^2
15 cm^3  !=  15 cm^2
15 cubic meters  ==  15 m^3
864 \mbox{ inches}^2  ==  864
864 square inches  ==  864 \mbox{ inches}^2
864 square feet  !=  864 \mbox{ inches}^2
5 apples  ==  5
(5 cm, 3 cm)  ==  (5, 3)
(5 cm, 3 cm)  !=  (3, 5)
5 apple  ==  5 apples
5 apples  !=  5 oranges
5 apples  !=  6 apples
5 boxes  ==  5 box
12 children  ==  12
5.4 \text{ cents}  ==  5.4
5.4 \text{ cents}  !=  5.4 \text{ dollars}
50 cents  !=  \$0.50
90°  ==  90
90^\circ  ==  90
90^{\circ}  ==  90 degrees
90^\circ  !=  60^\circ
90^\circ  !=  90\text{ radians}
90^\circ  !=  \frac{\pi}{2}
\frac{270}{7}^\circ  ==  \frac{270}7\text{ degrees}
$12.50  ==  12.5
\$12.50  ==  12.50
$12.50  !=  12.05
\$32,348  ==  \$32,\!348
\$36  ==  36 dollars
€36  !=  \$36
-\$5  ==  -5
\$18.90  !=  18.09
12th  ==  12
12^{\text{th}}  ==  12
21st  ==  21
3rd  !=  2nd
12th  !=  13
300 \mathrm{~km} / \mathrm{s}  ==  300
300 km/s  ==  300 \mathrm{~km} / \mathrm{s}
300 km/h  !=  300 \mathrm{~km} / \mathrm{s}
60 mph  ==  60 miles per hour
60 km/h  ==  60 \text{ kilometers per hour}
60 mph  !=  60 km/h
5 m  ==  5
5 m  ==  5 meters
5 m/s  ==  5
3\text{ hours}  !=  3\text{ minutes}
3 hrs  ==  3 hours
2 hours  !=  120 minutes
10 kg  ==  10 kilograms
10 kg  !=  10 g
18 eggs per day  ==  18
20\text{ m}  !=  21\text{ m}
9.6 \AA  ==  9.6
50 \mu\mathrm{m}  ==  50
2.2 \text{ years}  ==  2.2 yr
$5$ dollars  ==  5
7 units  ==  7
25\pi \text{ cm}^2  ==  25\pi
25\pi \text{ cm}^2  !=  25 \text{ cm}^2
twelve  !=  12
5 dollars  !=  five dollars
5\text{ ft}  ==  5 feet
5 feet  !=  5 inches
x = 5 \text{ cm}  ==  5
4 people  ==  4 persons
4 people  !=  4 dogs
99\%  !=  1
100\%  !=  0.1
33\%  !=  1/3
33.33\%  !=  \frac13
10\%  !=  20\%
10\%  !=  10 cm
150\%  !=  15
5 kg  !=  5 lb
5 in^2  !=  5\text{ in}
5 gallons  !=  5 liters
7 days  !=  1 week
60 seconds  !=  1 minute
$5  !=  5 cents
£5  !=  $5
$1,250  !=  $1.25
12th  !=  12.5
1st  !=  10
45^\circ  !=  \frac{\pi}{4}
0.5^\circ  !=  30
5 red apples  !=  6 red apples
3 cats  !=  3 dogs
20 m/s  !=  20 km/s
9 m^2  !=  9 m^3
6 hours  !=  6:00
forty-two  !=  42
\frac{3}{4}\text{ cup}  ==  0.75
"""

COLLECTIONS = r"""
(3,4)  ==  (3, 4)
3, 4  ==  (3,4)
(4,3)  !=  (3,4)
4, 3  !=  (3,4)
3, 4  ==  4, 3
4,3  ==  \{3,4\}
\{4, 3\}  ==  \{3, 4\}
\{3, 4\}  ==  3, 4
{3, 4}  ==  \{4,3\}
\{3, 3, 4\}  ==  \{3, 4\}
\{3, 5\}  !=  \{3, 4\}
\{3\}  !=  \{3, 4\}
\{3,4,5\}  !=  \{3,4\}
3  !=  3, 4
3, 4, 5  !=  3, 4
3, 4  !=  3
5, 6  !=  5
5 or 6  !=  5
3 and 4  ==  3, 4
3 \text{ and } 4  ==  4,3
3 \text{ or } 4  ==  4, 3
1,-2  ==  -2,1
[1,2]  !=  (1,2)
[1,2)  !=  [1,2]
(1,2]  !=  [1,2)
[1,2]  ==  [1, 2]
(1,2)  ==  (1, 2)
(1,2,3)  !=  (1,2)
(1,234)  !=  1234
(1,1006),(3,331)  ==  (3,331), (1,1006)
(1,1006),(331,3)  !=  (3,331), (1,1006)
(6,31,-1)  ==  6, 31, -1
(6,31,-1)  !=  (6,31,1)
\left(\frac{3}{5},\frac{8}{3}\right]  ==  (0.6, 8/3]
\left(\frac{3}{5},\frac{8}{3}\right)  !=  (0.6, 8/3]
\left( 3, \frac{\pi}{2} \right)  ==  (3, π/2)
(3, 1.57)  !=  \left( 3, \frac{\pi}{2} \right)
x \in [1,2]  ==  [1,2]
[1,2]  ==  x \in [1,2]
1 \le x \le 2  ==  [1,2]
1 ≤ x ≤ 2  ==  x \in [1,2]
1 < x \le 2  ==  (1,2]
1 < x < 2  !=  [1,2]
2 \ge x \ge 1  ==  [1,2]
a \le x \le b  ==  [a,b]
a \le x \le b  !=  (a,b)
x \ge 3  ==  [3, \infty)
x > 3  ==  (3, \infty)
x > 3  !=  [3,\infty)
x \le 3  ==  (-\infty, 3]
x < 2 \text{ or } x > 3  ==  (-\infty, 2) \cup (3, \infty)
(3,\infty) \cup (-\infty,2)  ==  (-\infty, 2) \cup (3, \infty)
(-∞, 2) ∪ (3, ∞)  ==  (-\infty, 2) \cup (3, \infty)
(-\infty, 2] \cup (3, \infty)  !=  (-\infty, 2) \cup (3, \infty)
(2, 3)  !=  (-\infty, 2) \cup (3, \infty)
(-\infty,0)\cup(0,\infty)  ==  x \ne 0
[0,1] \cup [1,2]  ==  [0,2]
(0,1) \cup (1,2)  !=  (0,2)
(0,2) \setminus \{1\}  ==  (0,1) \cup (1,2)
(-\infty, 0) \cup\{1\}  ==  \{1\} \cup (-\infty,0)
(-\infty, 0] \cup\{1\}  !=  (-\infty, 0) \cup\{1\}
x \ne 2  ==  (-\infty,2)\cup(2,\infty)
x \neq 2  ==  \mathbb{R} \setminus \{2\}
\mathbb{R}\setminus\{2\}  ==  x ≠ 2
\mathbb{R}\setminus\{3\}  !=  x \ne 2
\mathbb{R}  ==  (-\infty,\infty)
\emptyset  ==  \{\}
∅  ==  \varnothing
\emptyset  !=  \{0\}
\emptyset  !=  0
1 \pm \sqrt{19}  ==  1+\sqrt{19}, 1-\sqrt{19}
1 ± √19  ==  1 \pm \sqrt{19}
1 + \sqrt{19}  !=  1 \pm \sqrt{19}
1 - \sqrt{19}, 1 + \sqrt{19}  ==  1 \pm \sqrt{19}
\pm 3  ==  3, -3
\pm 3  !=  3
x = \pm 2  ==  \{-2, 2\}
\{1\pm\sqrt{5},-2\}  ==  -2, 1+\sqrt5, 1-\sqrt5
\{1\pm\sqrt{5},2\}  !=  \{1\pm\sqrt{5},-2\}
\frac{-1\pm\sqrt5}{2}  ==  \frac{-1-\sqrt5}{2}, \frac{-1+\sqrt5}{2}
\begin{pmatrix} -1/3 \\ 2/3 \\ 5/3 \end{pmatrix}  ==  \begin{bmatrix} -\frac13 \\ \frac23 \\ \frac53 \end{bmatrix}
\begin{pmatrix} 1 \\ 2 \end{pmatrix}  ==  (1, 2)
(1,2)  ==  \begin{pmatrix} 1 \\ 2 \end{pmatrix}
\begin{pmatrix} 1 & 2 \end{pmatrix}  !=  (1, 2)
\begin{pmatrix} 1 & 2 \end{pmatrix}  !=  \begin{pmatrix} 1 \\ 2 \end{pmatrix}
\begin{pmatrix} -1 & 0 \\ 0 & -1 \end{pmatrix}  ==  \begin{pmatrix}-1&0\\0&-1\end{pmatrix}
\begin{pmatrix} -1 & 0 \\ 0 & 1 \end{pmatrix}  !=  \begin{pmatrix} -1 & 0 \\ 0 & -1 \end{pmatrix}
\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}  !=  \begin{pmatrix} 1 & 3 \\ 2 & 4 \end{pmatrix}
\langle 1, 2 \rangle  ==  (1,2)
x = 3, y = 8  ==  (3, 8)
(3, 8)  ==  x = 3, y = 8
x = 8, y = 3  !=  (3, 8)
y = 8, x = 3  ==  (3, 8)
y = 8, x = 3  ==  x = 3, y = 8
x = 3, y = 9  !=  x = 3, y = 8
x = 3 and y = 8  ==  (3,8)
x = 1, x = 2  ==  1, 2
x = 1 or x = 2  ==  \{2, 1\}
x = 1, 2  ==  2, 1
x = 1, 3  !=  2, 1
(x,y) = (3,8)  ==  (3,8)
f(n)=n, g(n)=1  ==  g(n)=1, f(n)=n
f(x)=x,f(x)=-x  ==  f(x)=-x, f(x)=x
f(x)=x  !=  f(x)=x,f(x)=-x
(45^{\circ}, 60^{\circ})  ==  (45, 60)
1, 2, 3, 4  !=  1, 2, 3, 5
2400, 1350, 864  ==  864, 1350, 2400
2400, 1350  !=  864, 1350, 2400
(1, 2)  !=  \{1, 2\}
\{1, 2\}  !=  (1, 2)
[3, 5]  !=  \{3, 5\}
(0, 1)  !=  [0, 1]
(0, 1]  !=  (0, 1)
[0, \infty)  !=  (0, \infty)
(-\infty, 3)  !=  (3, \infty)
x \ge 3  !=  (3, \infty)
x > 4  !=  (3, \infty)
x \in (1,2)  !=  x \in (1,3)
0 < x < 5  !=  0 < x \le 5
x < 2 \text{ or } x > 4  !=  (-\infty, 2) \cup (3, \infty)
(-\infty, 2) \cup (3, 5)  !=  (-\infty, 2) \cup (3, \infty)
(0,9)  !=  (0,9) \cup (9,36)
(0,36)  !=  (0,9) \cup (9,36)
[0,9) \cup (9,36)  !=  (0,9) \cup (9,36)
x \ne 2  !=  x = 2
x \ne 2  !=  2
\mathbb{R}  !=  (0,\infty)
1 \pm \sqrt{19}  !=  1 \pm \sqrt{17}
1 \pm \sqrt{19}  !=  2 \pm \sqrt{19}
\pm 3  !=  \pm 4
3 \pm 2\sqrt{2}  !=  3 + 2\sqrt{2}
\begin{pmatrix} 1 \\ 2 \end{pmatrix}  !=  (2, 1)
\begin{pmatrix} 1 \\ 2 \end{pmatrix}  !=  \begin{pmatrix} 1 \\ 3 \end{pmatrix}
\begin{pmatrix} 1 \\ 2 \\ 3 \end{pmatrix}  !=  \begin{pmatrix} 1 \\ 2 \end{pmatrix}
x = 3  !=  x = 3, y = 8
x = 3, z = 8  !=  x = 3, y = 8
x = 1 or x = 2  !=  1
y = 1, y = 2  !=  x = 1, x = 2
(x,y) = (8,3)  !=  (3,8)
(1,2), (3,4)  !=  (1,2)
(1,2), (3,4)  !=  (1,2), (4,3)
\{1,2\}  !=  \{1,2\}, \{3\}
\frac{1}{2}, 3  !=  \frac{1}{3}, 2
1, 2, 2  !=  1, 1, 2
"""

ALGEBRA = r"""
(x+1)^2  ==  x^2+2x+1
(x+1)^2  !=  x^2+1
x^2 - 1  ==  (x-1)(x+1)
p - q  ==  -q + p
p - q  !=  q - p
2xy  ==  2yx
x/2  ==  \frac{x}{2}
\frac{x}{2}  !=  \frac{2}{x}
\frac{1}{x}+\frac{1}{y}  ==  \frac{x+y}{xy}
\frac{1}{x+1}  !=  \frac{1}{x}+1
\sqrt{x^2}  !=  x
|x|  ==  \sqrt{x^2}
x^{1/2}  ==  \sqrt{x}
x^{-1}  ==  \frac1x
e^{2x}  ==  (e^x)^2
e^{x+1}  !=  e^x+1
\ln(xy)  ==  \ln x + \ln y
\ln(x+y)  !=  \ln x + \ln y
\sin^2 x + \cos^2 x  ==  1
\cot x  ==  \frac{\cos x}{\sin x}
\tan x  !=  \cot x
\sin 2x  ==  2\sin x\cos x
\sin 2x  !=  2\sin x
2^{n+1}  ==  2 \cdot 2^n
2^{n+1}  !=  2^n + 1
\frac{n(n+1)}{2}  ==  \binom{n+1}{2}
\frac{n(n-1)}{2}  !=  \binom{n+1}{2}
n!  ==  n \cdot (n-1)!
\lfloor \frac{n}{2} \rfloor + 1  ==  1 + \lfloor n/2 \rfloor
\lceil n/2 \rceil  !=  \lfloor n/2 \rfloor
(a+5)(b+2)  ==  ab + 2a + 5b + 10
(a+5)(b+2)  !=  (a+2)(b+5)
x^3+3x-6  ==  -6+3x+x^3
x^3+3x-6  !=  x^3+3x+6
x = 5  ==  5
5  ==  x=5
y = 5  !=  x=5
y = 5  ==  5
x = 6  !=  x=5
x=5  ==  x = 10/2
y = 2x + 3  ==  2x+3
2x+3  ==  y = 2x + 3
y = 2x - 3  !=  y = 2x + 3
2x - y + 3 = 0  ==  y = 2x + 3
z = 2x + 3  !=  y = 2x + 3
f(x) = 2x  ==  2x
f(x) = 2x  !=  g(x) = 2x
5x - 7y + 11z + 4 = 0  ==  -5x + 7y - 11z - 4 = 0
10x - 14y + 22z + 8 = 0  ==  5x - 7y + 11z + 4 = 0
5x - 7y + 11z = -4  ==  5x - 7y + 11z + 4 = 0
5x - 7y + 11z = 4  !=  5x - 7y + 11z + 4 = 0
x^2 + y^2 = 1  ==  2x^2 + 2y^2 = 2
x^2 + y^2 = 1  !=  x^2 + y^2 = 2
x^2 + y^2 = 1  !=  x^2 - y^2 = 1
2 + 3 = 5  ==  5
10 + 5 = 15  ==  15
10 + 5 = 15  !=  10
x < 3  ==  2x < 6
x < 3  ==  3 > x
x < 3  !=  x > 3
x < 3  !=  x \le 3
-x > -3  ==  x < 3
x^2 < 4  ==  -2 < x < 2
x^2 > 4  !=  -2 < x < 2
|x - 1| \le 2  ==  [-1, 3]
|x - 1| < 2  !=  [-1, 3]
x + y < 3  ==  y < 3 - x
x + y < 3  !=  y > 3 - x
k \geqslant 2  ==  k \ge 2
\frac{d !}{2 k(d-k) !}  ==  \frac{d!}{2k\,(d-k)!}
\frac{\log 2}{\log 2-\log 3}  ==  \frac{\ln 2}{\ln 2 - \ln 3}
x_{0} \cos (\omega t)  ==  x_0\cos(\omega t)
x_{0} \cos (\omega t)  !=  x_1\cos(\omega t)
m_{p} c^{2}  ==  c^2 m_p
C_{1} e^{t}+C_{2} e^{-t}  ==  C_2e^{-t} + C_1e^t
\exp(-t)  ==  e^{-t}
arcsin(10/13)  ==  np.arcsin(10/13)
\sin^{-1}(x)  ==  \arcsin x
\sqrt{5} - 1  !=  1 - \sqrt{5}
\frac{11+9a}{20}  ==  \frac{9a + 11}{20}
8n^2 + 4n + 1  !=  8n^2 + 4n - 1
3R^2  ==  3 R^{2}
2k  !=  k
e^{-200}  !=  0
e^{-200}  !=  e^{-300}
\sin \pi  ==  0
\cos\frac{\pi}{2}  ==  0
e^{100} - e^{100}  ==  0
\sqrt{2}^2 - 2  ==  0
(\sqrt{2} - 1)^{99}  !=  0
4 \approx 5 \approx 6  !=  5
4 \approx 5  !=  5
0  !=  I(0)
I(0)  ==  I(0)
2k + 2  !=  2k + 1
x^2 + 1  !=  x^2 - 1
6r^2-4r-24  !=  6r^2+4r-24
x^5 - x^4 + x^3 - x^2 + x - 1  !=  x^5 - x^4 + x^3 - x^2 + x + 1
(x-1)^3  !=  x^3 - 1
x y  !=  x + y
\frac{a}{b}  !=  \frac{b}{a}
\frac{x}{2} + 1  !=  \frac{x+1}{2}
a^b  !=  b^a
\sqrt{a+b}  !=  \sqrt{a}+\sqrt{b}
\sin x  !=  \cos x
\sin(x^2)  !=  \sin^2 x
\arcsin x  !=  \frac{1}{\sin x}
e^{-t}  !=  e^t
\ln x  !=  \ln 2x
2^{k-1}  !=  2^k
\binom{2n}{n}  !=  \binom{2n}{2}
x_1 + x_2  !=  x_1 - x_2
x = 5  !=  x = -5
x = 5  !=  x = 5, 6
y = -2x  !=  y = 2x
f(x) = x^2  !=  f(x) = x
x^2 = 4  !=  x^2 = 5
x + y = 3  !=  x - y = 3
x \le 3  !=  x \ge 3
x < 5  !=  2x < 5
x > 0  !=  x \ge 0
x^2 \ge 4  !=  x \ge 2
|x| < 2  !=  |x| < 3
2 + 2 = 4  !=  5
"""

TEXTS = r"""
Monday  ==  \text{Monday}
\text{monday}  ==  Monday
Monday.  ==  Monday
Tuesday  !=  \text{Monday}
the east  ==  \text{east}
\textbf{Evelyn}  ==  \text{Evelyn}
Evelyn  !=  \text{Navin}
an ellipse  ==  \text{ellipse}
ellipse  !=  circle
even  !=  odd
even  ==  \text{even}
yes  ==  true
Yes.  ==  \text{True}
No  ==  false
no  !=  yes
True  !=  False
yes  !=  correct
(C)  ==  C
C  ==  \text{(C)}
C.  ==  (C)
C) 12  ==  C
(C) 12  ==  \text{(C)}
\textbf{(C)}\ 12  ==  C
(D) 12  !=  C
D  !=  \text{(C)}
E  ==  \text{(E)}
(E)  ==  E
e  ==  E
A  !=  E
3:4  ==  3/4
3:4  ==  6:8
3:4  !=  4:3
3:4  ==  0.75
1:2:3  ==  1 : 2 : 3
1:2:3  !=  3:2:1
May 5, 2020  ==  May 5 2020
May 6, 2020  !=  May 5, 2020
5/12/2020  !=  12/5/2020
2020-05-12  !=  2003
2020-05-12  ==  2020-05-12
3:45 p.m.  ==  3:45 PM
3:45 p.m.  !=  3:46 p.m.
twelve  ==  Twelve
twelve  !=  eleven
red and blue  ==  blue and red
red and blue  !=  red
red, green  !=  red, blue
north-west  ==  north west
Alice and Bob  ==  \text{Alice and Bob}
no  !=  on
A  !=  (B)
B) 7  !=  C
B  !=  C
\text{(D)}  !=  \text{(E)}
2:3  !=  3/4
Sunday  !=  Saturday
never  !=  always
a circle  !=  a square
June 1  !=  July 1
"""

DIALECTS = r"""
\left(\frac12, 3\right)  ==  \left( \dfrac{1}{2} , 3 \right)
\frac{1}{2}  ==  \frac 12
\frac1{72}  ==  \frac{1}{72}
\frac{1}72  !=  \frac{1}{72}
\sqrt2  ==  \sqrt{2}
\sqrt 2  ==  \sqrt{2}
11\sqrt2  ==  11\sqrt{2}
\mathrm{25}  ==  25
\text{25}  ==  25
$25$  ==  25
\(25\)  ==  25
\[25\]  ==  25
**25**  ==  25
25.  ==  25
{25}  ==  25
(25)  ==  25
x^{2}  ==  x^2
2\cdot 3  ==  2 \times 3
6  ==  2 × 3
2\,\pi  ==  2\pi
2\;\!\pi  ==  2\pi
\left|x\right|  ==  |x|
\displaystyle\frac{1}{2}  ==  1/2
\dfrac{\sqrt{3}}{3}  ==  \frac{\sqrt3}3
\frac{\sqrt{3}}{3}  !=  \frac{\sqrt{3}}{2}
2 \mathrm{e}^{x}  ==  2e^x
\operatorname{lcm}(4,6)  ==  12
\gcd(4,6)  ==  2
x \leq 5  ==  x \le 5
x \leqslant 5  ==  x ≤ 5
\{1,2\}  ==  \lbrace 1, 2 \rbrace
\lvert x \rvert  ==  |x|
\theta  ==  θ
\frac{θ}{2}  ==  \frac{\theta}{2}
The answer is 7  ==  7
"""

EVERYDAY = r"""
\$18  ==  18
18.00  ==  18
\$1,450,000  ==  1,450,000
\$1,450,000  !=  145000
65,960 \text{ dollars}  ==  65,960
\text{The answer is } 5  ==  5
\frac{3}{4} \text{ hours}  ==  0.75
\frac{3}{4} \text{ hours}  !=  0.34
45  ==  45\%
4\sqrt{3} \approx 6.93  ==  4\sqrt{3}
4\sqrt{3} \approx 6.93  ==  6.93
4\sqrt{3} \approx 6.93  !=  7
x = 4\sqrt{3} \approx 6.93  ==  4\sqrt{3}
\frac{\pi}{4} + k\pi, k \in \mathbb{Z}  ==  \frac{\pi}{4} + k\pi
\frac{\pi}{4} + k\pi, k \in \mathbb{Z}  !=  \frac{\pi}{3} + k\pi
= 5  ==  5
+5  ==  5
5^\circ C  ==  5
5^\circ C  ==  5^\circ\text{C}
5^\circ C  !=  5^\circ F
5\ \frac{\text{m}}{\text{s}}  ==  5 m/s
5\ \frac{\text{m}}{\text{s}}  ==  5
AB = 5  ==  5
AB = 5  !=  6
x + y = 7  ==  7
x + y = 7  !=  8
2x = 10  !=  10
\frac{a}{b} = \frac{2}{3}  ==  \frac{2}{3}
P(A) = \frac12  ==  0.5
P(X > 2) = 0.5  ==  \frac{1}{2}
P(X > 2) = 0.5  !=  2
\text{Area} = 12\pi  ==  12\pi
\text{Area} = 12\pi  !=  12
V = 36\pi \text{ cm}^3  ==  36\pi
\begin{cases} x=1 \\ y=2 \end{cases}  ==  (1,2)
\begin{cases} x=2 \\ y=1 \end{cases}  !=  (1,2)
\begin{aligned} x&=1 \\ y&=2 \end{aligned}  ==  x=1, y=2
\mathbf{v} = \begin{pmatrix} 1 \\ 2 \end{pmatrix}  ==  \begin{pmatrix} 1 \\ 2 \end{pmatrix}
\mathbf{v} = \begin{pmatrix} 1 \\ 2 \end{pmatrix}  !=  \begin{pmatrix} 2 \\ 1 \end{pmatrix}
-1 < x < 3, x \neq 0  ==  (-1,0)\cup(0,3)
-1 < x < 3, x \neq 1  !=  (-1,0)\cup(0,3)
x \in (-\infty, -1) \cup (3, \infty)  ==  x < -1 \text{ or } x > 3
x>3, x<-1  ==  (-\infty,-1)\cup(3,\infty)
\frac{x^2-1}{x-1}  ==  x+1
\frac{1}{2}\ln|x|+C  ==  \frac12 \ln |x| + C
\sin^{-1}\frac{1}{2}  ==  \frac{\pi}{6}
\sin^{-1}\frac{1}{2}  !=  \frac{\pi}{3}
\binom{10}{3} = 120  ==  120
0.\overline{27}  ==  \frac{3}{11}
0.\overline{27}  !=  0.27
2.5 \times 10^{-3}  ==  0.0025
2.5 \times 10^{-3}  !=  0.025
a_n = 2n+1  ==  2n+1
a_n = 2n+1  !=  2n-1
S = \{1,2\}  ==  \{2,1\}
S = \{1,2\}  !=  \{1,3\}
D = (-\infty, 1)  ==  (-\infty,1)
\angle ABC = 60^\circ  ==  60
\angle ABC = 60^\circ  !=  30
A \text{ and } C  ==  A, C
A \text{ and } C  !=  A, B
1/2 \text{ or } 0.5  ==  \frac12
1/2 \text{ or } 2  !=  \frac12
\text{12 apples}  ==  12
\text{12 apples}  !=  13
(x, y) = (2, -1)  ==  (2, -1)
2, -1  ==  x=2, y=-1
-1, 2  !=  x=2, y=-1
\{(3,5),(7,9)\}  ==  (7,9), (3,5)
(3, 5) \text{ and } (7, 9)  ==  (3,5),(7,9)
(3, 5) \text{ and } (9, 7)  !=  (3,5),(7,9)
y = \frac{1}{2}x + 3  ==  y = 0.5x+3
y = \frac{1}{2}x + 3  !=  y = 2x+3
7!  ==  5040
12\pi \text{ square units}  ==  12\pi
12\pi \text{ square units}  !=  12
\text{No solution}  ==  no solution
\text{No solution}  !=  0
25 USD  ==  25
25\%\text{ off}  ==  25\%
6.02\times10^{23}\,\text{mol}^{-1}  ==  6.02e23
6.02\times10^{23}\,\text{mol}^{-1}  !=  6.02e22
\vec{v} = (1,2)  ==  (1,2)
\vec{v} = (1,2)  !=  (2,1)
\sqrt[3]{2}  ==  2^{1/3}
\sqrt[3]{2}  !=  \sqrt{2}
2\text{ hours and }30\text{ minutes}  !=  2.5
2\text{ hours and }30\text{ minutes}  ==  2 hours and 30 minutes
-x^2+3x  ==  x(3-x)
-x^2+3x  !=  x(3+x)
"""

MORE = r"""
\left(\begin{array}{c}2\\0\end{array}\right)  ==  (2,0)
\left(\begin{array}{cc}2&1\\0&3\end{array}\right)  ==  \begin{pmatrix}2&1\\0&3\end{pmatrix}
\left[\begin{matrix}2&1\\0&3\end{matrix}\right]  !=  \begin{pmatrix}2&0\\1&3\end{pmatrix}
f^{-1}(x)=\sqrt{x}  ==  \sqrt{x}
f^{-1}(x)=\sqrt{x}  !=  f(x)=\sqrt{x}
f'(x)=2x  ==  2x
f'(x)=2x  !=  f(x)=2x
\frac{dy}{dx}=2x  ==  2x
\frac{d}{dx} x^2  !=  x
\frac{d}{dx} x^2  !=  2x
\frac{d}{dx} x^2  ==  \dfrac{d}{d x} (x^2)
\frac{d^2}{dx^2} x^3  !=  \frac{d}{dx} x^3
\frac{d^2y}{dx^2}=2  ==  \frac{d^{2} y}{dx^{2}} = 2
\frac{d^2y}{dx^2}  !=  \frac{dy}{x^2}
\frac{d}{d+7}  ==  \frac{d}{7+d}
\frac{dM}{dt}=2M  ==  2\frac{dM}{dt} = 4M
\frac{dM}{dt}=2M  !=  2M t = M
{n \choose 2}  ==  \binom{n}{2}
{n \choose 2}  !=  \binom{n}{3}
0.3\dot{3}  ==  1/3
\{x \mid x > 2\}  ==  (2,\infty)
\{x \in \mathbb{R} : x > 2\}  ==  (2,\infty)
\{x \in \mathbb{R} : x > 2\}  !=  (3,\infty)
x>2, x\neq 3  ==  (2,3)\cup(3,\infty)
x>2, x\neq 3  !=  (2,\infty)
x+2=5  !=  3
\text{none}  !=  0
\text{at least }5  !=  5
\text{Between 5 and 6}  !=  5
12.000  ==  12
2:1  ==  2
2 \text{ to } 1  !=  2:1
y-2=3(x-1)  ==  y=3x-1
y-2=3(x-1)  !=  y=3x+1
x^2+y^2-4x=0  ==  (x-2)^2+y^2=4
x^2+y^2-4x=0  !=  (x-2)^2+y^2=2
A, B  ==  B, A
\text{A and B}  !=  A
3  !=  \textbf{(B) }3
\$0.50  !=  50\text{ cents}
5\text{ bucks}  ==  \$5
\lim_{x\to0}\frac{\sin x}{x}  !=  1
x \to 2  !=  2
8:00 AM  ==  8:00 a.m.
8:00 AM  !=  8:00 PM
\sum_{i=1}^{3} i  !=  6
\text{Saturday}  !=  Sat
"""
CALCULUS = r"""
\int_0^1 x\,dx  ==  \int_{0}^{1} x \, dx
\int_0^1 t^2\,dt  ==  \int_0^1 x^2 dx
\int_0^1 x^2 dx  !=  \int_0^1 x^3 dx
\int_0^1 x dx  !=  \int_0^2 x dx
\int_0^1 x dx  !=  \int_0^1 x dy
\int x dx  !=  \int_0^1 x dx
∫_0^1 x dx  ==  \int_0^1 x\,\mathrm{d}x
\int_0^1 (x+1)^2 dx  ==  \int_0^1 (x^2+2x+1) dx
\int_0^1 \theta \, d\theta  ==  \int_0^1 x dx
\int_0^\pi \sin x\,dx  ==  \int_0^{\pi} \sin(x) dx
2\int_0^1 f(x)dx  ==  \int_0^1 f(x)dx + \int_0^1 f(x)dx
\int_0^1 x dx + 1  !=  \int_0^1 x dx
\int_0^1\int_0^2 xy\,dx\,dy  ==  \int_0^1\int_0^2 ts\,dt\,ds
\int_0^1\int_0^2 x\,dx\,dy  !=  \int_0^1\int_0^2 y\,dx\,dy
\oint f dz  !=  \int f dz
\int \frac{dx}{x}  ==  \int \frac{1}{t} dt
\int \frac{dx}{x}  !=  \int \frac{dx}{x^2}
\int_0^1 f(x)dx > 0  !=  \int_0^1 f(x)dx \ge 0
\sum_{d|n} d  ==  \sum_{d \mid n} d
\sum_{d|n} d  !=  \sum_{n|d} d
\sum_{d|n} d  !=  \sum_{d|n} 1
\sum_{n=1}^{\infty} \frac{1}{n^2} = \frac{\pi^2}{6}  ==  \frac{\pi^2}{6}
\int x^2 dx = \frac{x^3}{3} + C  ==  \frac{x^3}{3} + C
\begin{pmatrix}\sum_{i=1}^n i\\2\end{pmatrix}  ==  (\sum_{j=1}^n j, 2)
\int_0^1 f(x)dx = 3  !=  \int_0^2 f(x)dx = 3
\int_0^1 f(x)dx = 3  ==  3
\sum_{i=1}^{n} i^2  ==  \sum_{k=1}^n k^2
\sum_{i=1}^{n} i^2  !=  \sum_{i=1}^n i^3
\sum_{i=1}^n i  !=  \sum_{i=0}^n i
\sum_{i=1}^n i  !=  \prod_{i=1}^n i
\sum_{i=1}^{n}\sum_{j=1}^{n} i  !=  \sum_{i=1}^n\sum_{j=1}^n j
\sum_{i=1}^{n}\sum_{j=1}^{n} ij  ==  \sum_{a=1}^{n}\sum_{b=1}^{n} ab
\sum_{i=1}^n a_i  ==  \sum_{k=1}^n a_k
\sum_{i=1}^n a_i  !=  \sum_{i=1}^n b_i
\sum_{i=1}^n a_i  !=  \sum_{i=1}^n a_j
\sum_{i<j} x_i x_j  ==  \sum_{i<j} x_ix_j
\sum_{i<j} x_i x_j  !=  \sum_{i \le j} x_i x_j
S = \sum_{i=1}^{n} i  ==  \sum_{i=1}^n i
n  !=  \sum_{i=1}^n i
∑_{i=1}^n i  ==  \displaystyle\sum\limits_{i=1}^n i
\frac{1}{n}\sum_{i=1}^n x_i  ==  \frac{\sum_{i=1}^{n} x_i}{n}
\sum_{k=0}^{\infty} \frac{x^k}{k!}  ==  \sum_{n=0}^\infty \frac{x^n}{n!}
\prod_{i=1}^n (1+x_i)  ==  \prod_{k=1}^n (x_k+1)
\prod_{i=1}^n (1+x_i)  !=  \prod_{i=1}^n (2+x_i)
\lim_{h \to 0} \frac{f(x+h)-f(x)}{h}  ==  \lim_{t\to 0} \frac{f(x+t)-f(x)}{t}
\lim_{x\to 0^+} \ln x  ==  \lim_{x \to 0^{+}} \ln x
\lim_{x\to 0^+} f(x)  !=  \lim_{x\to 0^-} f(x)
\lim_{x\to 0^+} f(x)  !=  \lim_{x\to 0} f(x)
\lim_{x\to 0} f(x)  !=  \lim_{x\to 1} f(x)
\lim_{n\rightarrow\infty} a_n  ==  \lim_{n\to\infty} a_n
x \equiv 3 \pmod{7}  ==  x\equiv 3 \pmod 7
x ≡ 3 (mod 7)  ==  x\equiv 3 \pmod 7
x \equiv 3 \ (\text{mod } 7)  ==  x \equiv 3 \bmod 7
x \equiv 10 \pmod{7}  ==  x\equiv 3 \pmod 7
-4 \pmod 7  ==  x \equiv 3 \pmod 7
x \equiv 4 \pmod 7  !=  x \equiv 3 \pmod 7
y \equiv 3 \pmod 7  !=  x \equiv 3 \pmod 7
x \equiv 3 \pmod{14}  !=  x \equiv 3 \pmod 7
x = 3  !=  x \equiv 3 \pmod 7
3  !=  x \equiv 3 \pmod 7
3 \pmod{7}  ==  3
10 \pmod 7  !=  3
x \equiv a \pmod n  ==  x\equiv a\pmod{n}
n \equiv 1, 3 \pmod{8}  ==  n \equiv 3, 1 \pmod 8
n \equiv 1 \pmod{8}  !=  n \equiv 1, 3 \pmod 8
x \equiv 1 \text{ or } 5 \pmod{6}  ==  1, 5 \pmod 6
x \equiv 1 \pmod{6}, x\equiv 2 \pmod 5  !=  x \equiv 1 \pmod{6}
"""
THOUSANDS = r"""
10 000  ==  10000
10000  ==  10 000
10\,000  ==  10 000
10\;000  ==  10000
10~000  ==  10000
10 000  ==  10000
10 000  ==  10,000
10 000  ==  10{,}000
10 000  !=  10001
10 000  !=  10
10 000  !=  1000
1 234 567  ==  1234567
1 234.5  ==  1234.5
-1 000  ==  -1000
x = 1 000  ==  1000
(1 000, 2 000)  ==  (1000,2000)
1 000, 2 000  ==  2000, 1000
2 \cdot 1 000  ==  2000
12 345 m  ==  12345
\$1 500  ==  1500
10 00  !=  1000
10 0000  !=  100000
1000 000  !=  1000000
1 00  !=  100
0 123  !=  123
1 234 56  !=  123456
1,000 000  !=  1000000
2.5 100  !=  2.5100
1 000  !=  1, 0
3 456/789  ==  3\frac{456}{789}
3 456/789  !=  3456/789
1 1/2  ==  1.5
1 1/2  !=  11/2
x^2 100  !=  x^{2100}
"""
UNUSUAL = r"""
45 min  ==  45 minutes
45 min  ==  45
45 min  !=  45 sec
30 sec  ==  30\text{ seconds}
3\text{ min}  ==  3 minutes
\min(3,4)  ==  3
\sec 0  ==  1
7 \text{ p.m.}  ==  7 pm
7 pm  !=  7 am
\cos(60°)  ==  \frac12
\cos(60°)  !=  \cos 60
\{x | x > 3\}  ==  (3,\infty)
x > 3  ==  \{x : x > 3\}
\{x | |x| < 3\}  ==  (-3, 3)
\{x | x > 3\}  !=  [3,\infty)
a) 3, b) 5  ==  3, 5
(a) 3, (b) 5  ==  (3, 5)
(i) 3; (ii) 4  ==  3, 4
\text{(a) }3, \text{ (b) }4  ==  3, 4
(a) 3, (b) 5  !=  3, 6
(a) (1,2), (b) (3,4)  ==  (1,2), (3,4)
(a, b)  !=  (b, a)
5\\  ==  5
y=-\frac12x+4  ==  x+2y=8
(x-2)^2+(y+3)^2=16  ==  x^2+y^2-4x+6y-3=0
(x-2)^2+(y+3)^2=16  !=  x^2+y^2-4x+6y+3=0
4^{n}  ==  2^{2n}
4^n  !=  4n
\frac{7}{10}  ==  70\%
\frac{1}{3}  !=  33.3\%
DNE  !=  0
DNE  ==  \text{DNE}
\infty  !=  DNE
2:3:4  !=  4:3:2
|x| < 1  ==  (-1,1)
x \in (-\infty, -3) \cup (3, \infty)  ==  |x| > 3
x < -3 \text{ or } x > 3  ==  |x| > 3
|x| > 3  ==  x \in (-\infty, -3) \cup (3, \infty)
|x| > 3  !=  x \in (-\infty, -3] \cup (3, \infty)
|y| > 3  !=  x \in (-\infty, -3) \cup (3, \infty)
x = 3, x = -3  !=  |x| > 3
\text{Option B}  ==  B
\text{Option B}  !=  C
choice (C)  ==  \text{(C)}
|x| < 1  !=  [-1,1]
p = 0.25  ==  \frac14
25\%  !=  4
\lg 100  ==  2
July 4  !=  July 5
"""
