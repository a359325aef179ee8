"""The paper's first figure: diffusion against blurring-sharpening on a grid."""
