/* Any of the first followed by any of the second is an id of 32 bytes, and all have one hash.
   Made by collide.py (`_blocks`, seed 1). */

#ifndef HELDOUT_FUZZ_COLLIDING_H
#define HELDOUT_FUZZ_COLLIDING_H

#define COLLIDING 20

static const char *const BEGINS[COLLIDING] = {
    "Y&|yk2b\?*_NzXI~=", "@xDl7+<8Hu5@7SZT", "|fmI{\?:=ySKIj7+T", "sGR)YQs>!%%!qyKc",
    "p8\\eH|s2q\\,G~}83", "Lf5k`\"o'h[{\\+~{o", "V4zaAAE+ZN2rkV>$", "\?he$L.WL'Z,T3+#M",
    "}){SkMG'Oki7q|5e", "\?u(Gpn=LC0urWV4%", "Uf&cCguD@-u,Fk2;", "3@dr[@`ZEe=lU}F<",
    "uhqM5<f~K-iN-p<y", "e+l2\"G5:lDObZ/z$", "p<l#Dm3Dw8j*xm>_", "\?j8vO-:0Awc=U\\5=",
    "rucfT~EQ}Gv%Xy7:", "i)leZH~\"Zm}$8,nI", "JIvH8w7pZC65wc>=", "~=~YXlG%vIQ@_>N-",
};

static const char *const ENDS[COLLIDING] = {
    "xP<9t<OtLM+]0nov", "goi@Ttw8f)j1Q.D>", "gq$B|MLh}:8>J_{\?", "B@%c/|:{Bz!el#]<",
    "T#*rY7d6!{Yki`/{", ")p:*=3SQP5}3q~Nc", "f+wt[jVwdXnAF/\"d", "+$Q<^pPqyDpirk'd",
    "|{Jn6)[Qquocai1&", "za%'.}WLpD*WV\"[$", "1\")%,$-hU.x*|)Ni", "{q\?Mv@W4aUMtZO1&",
    "gG;jC\\@4JRS!}]9X", "M=I&Br#Yw>~\?\"9Q0", "pYui*(}i+\?#/\?89~", "@G)|NS{QoJ3Z+\\dT",
    "L&v{P\\=n&#{AfY!m", "@:c~LZO;<Wa,xpEq", "SKK~<HAA2UvHAz_M", "\?l:6sNcnUrvBZF*=",
};

#endif
